"""The two bodies of a fused operator on a CPU, and the rule by which their results are compared with eager's."""

from collections.abc import Sequence

import pytest
import torch

from course_lib.kernels.cpu import library
from course_lib.verify.error_rule import deviation

BODIES = ("compiled", "eager")
EACH_BODY = pytest.mark.parametrize("body", BODIES)


def use(body: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let fused operators run with one of `BODIES`; a test of the compiled ones fails where they are not installed."""
    if body == "eager":
        monkeypatch.setattr(library, "loaded", lambda: None)
    else:
        assert library.loaded() is not None, f"the compiled bodies are not there; `{library.BUILD}` compiles them"


def compare(
    ours: Sequence[torch.Tensor],
    eager: Sequence[torch.Tensor],
    truth: Sequence[torch.Tensor],
    *,
    exact: bool,
    magnified: float = 1.0,
) -> None:
    """Fail unless all of `ours` equal `eager`, or, if they need not be exact, are as near to the fp64 `truth`.

    `magnified` is by how much a division by a standard deviation magnifies the rounding of what it divides.
    """
    largest = magnified * max((float(one.abs().nan_to_num().max()) for one in truth if one.numel()), default=0.0)
    for mine, theirs, true in zip(ours, eager, truth, strict=True):
        assert (mine.shape, mine.dtype) == (theirs.shape, theirs.dtype)
        if exact:
            torch.testing.assert_close(mine, theirs, rtol=0, atol=0, equal_nan=True)
        else:
            found = deviation(mine, true, theirs, magnitude=largest)
            assert found.within_bound, found
