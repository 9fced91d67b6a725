"""Workers that must lack a package of others are forked, like all others, and their zygote lacks it too."""

from collections.abc import Sequence

import pytest

from autograder.host.sandbox.bubblewrap import Bubblewrap
from autograder.host.sandbox.resources import find_hierarchy
from tests.autograder.host.sandbox.conftest import asked, opened, serving

WITHOUT = ("torch._dynamo",), ("torch.distributed.tensor.experimental",), ("torch._dynamo", "torch._inductor")
HELD = """
def entry(names):
    import os, sys, torch
    shown = [os.path.exists(os.path.dirname(torch.__file__) + "/../" + name.replace(".", "/") + "/__init__.py")
             for name in names]
    return [shown, [sum(each.startswith(name + ".") for each in sys.modules) > 0 for name in names]]
"""


@pytest.mark.parametrize("level", [1, 2])
def test_workers_without_a_package_of_others_are_forked_from_a_zygote_that_never_saw_it(
    level: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened(level)  # which skips the test where this machine has no such level
    sandbox = Bubblewrap(find_hierarchy() if level == 1 else None)
    monkeypatch.setattr(sandbox, "_start", lambda *_: pytest.fail("a worker starts cold"))

    def held(masked: tuple[str, ...], names: Sequence[str]) -> object:
        sandbox.expect("graphs", masked=masked)  # of which a part cannot be imported without the package
        worker, channel = serving(sandbox, masked)
        with worker:
            return asked(channel, HELD, list(names)).body["value"]

    zygotes = sandbox.zygotes
    try:
        for masked in (*WITHOUT, WITHOUT[-1]):
            assert held(masked, masked) == [[False] * len(masked)] * 2
        assert held((), ("torch._dynamo",)) == [[True], [True]]
        running = {masked: each._current.jobs for masked, each in sandbox._without.items() if each._current}
        assert running == {WITHOUT[-2]: 1, WITHOUT[-1]: 2}, "two are kept, since each takes the memory of torch"
    finally:
        for each in (zygotes, *sandbox._without.values()):
            assert each is not None
            each.close()
