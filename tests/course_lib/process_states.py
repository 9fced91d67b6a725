"""Whatever a function of the library is given, and in however many threads, torch and the process stay as they were."""

import functools
import importlib
import inspect
import logging
import sys
import threading
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import sympy  # noqa: F401  # it sets filters of warnings when it is imported first
import torch
import torch.nn.functional as F
from torch import Tensor, fx, nn
from torch._C import _functorch
from torch.autograd import forward_ad
from torch.utils._python_dispatch import _get_current_dispatch_mode_stack

from course_lib.capture import capture, compare_modes
from course_lib.errors import CaptureError
from course_lib.fusion import fuse
from course_lib.graph import propagate_shapes
from course_lib.isolation import preserving

PACKAGES = (
    "backends", "capture", "fusion", "graph", "inductor_passes", "kernels", "launches", "machine", "profiling",
    "schedule", "timing", "verify",
)  # fmt: skip
# What these do does not depend on their arguments, and takes seconds.
FREE_OF_INPUTS = ("environment", "selfcheck", "silent_errors")
X = torch.linspace(-1.0, 1.0, 6).reshape(2, 3)


class _Fails(nn.Module):
    """Fail inside of modes and levels that a graph or a program begins and does not end."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(3, 3)

    def forward(self, x: Tensor) -> Tensor:
        print("begin")
        warnings.warn("begin", stacklevel=1)
        torch.set_grad_enabled(False)
        torch.set_default_dtype(torch.float64)
        torch.autocast("cpu").__enter__()
        raise ValueError("in the middle")


class _FailsWithin(nn.Module):
    """Fail inside of modes that end by themselves; a default dtype is one for all threads."""

    def forward(self, x: Tensor) -> Tensor:
        print("begin")
        warnings.warn("begin", stacklevel=1)
        with torch.no_grad(), torch.autocast("cpu"):
            raise ValueError("in the middle")


def _failing_graph() -> fx.GraphModule:
    """Return a graph that begins a level of vmap, and fails before it ends the level."""
    graph = fx.Graph()
    x = graph.placeholder("x")
    graph.call_function(_functorch._vmap_increment_nesting, (2, "error"))
    graph.output(graph.call_function(torch.mm, (x, x)))
    return fx.GraphModule(nn.Module(), graph)


GIVEN: dict[str, Callable[[], Any]] = {
    "a program that fails": _Fails,
    "a graph that fails": _failing_graph,
    "nothing": lambda: None,
}


@pytest.fixture(autouse=True)
def _restored() -> Iterator[None]:
    """Restore what a test found to be changed, for the tests after it."""
    with preserving(None):
        yield


def _dual_level() -> int:
    """Return the number that the next level of forward mode gets; PyTorch allows one level."""
    level = torch._C._enter_dual_level()
    torch._C._exit_dual_level(level)
    return int(level)


def _state() -> dict[str, object]:
    return {
        "streams": (sys.stdout, sys.stderr),
        "warnings": (list(warnings.filters), warnings.showwarning),
        "logs": logging.root.manager.disable,
        "gradients": (torch.is_grad_enabled(), torch.is_inference_mode_enabled()),
        "forward mode": (forward_ad._current_level, torch._C._is_fwd_grad_enabled()),
        "dual level": _dual_level(),
        "levels": _functorch.get_dynamic_layer_stack_depth(),
        "modes": (len(_get_current_dispatch_mode_stack()), torch._C._len_torch_function_stack()),
        "tracing": torch._C._get_tracing_state(),
        "autocast": (torch.is_autocast_enabled("cpu"), torch.is_autocast_cache_enabled()),
        "defaults": (torch.get_default_dtype(), torch.get_default_device(), torch.get_num_threads()),
        "algorithms": (torch.are_deterministic_algorithms_enabled(), torch.backends.mkldnn.enabled),
        "saved tensors": torch._C._autograd._saved_tensors_hooks_get_disabled_error_message(),
        "modules": (nn.Module.__call__, nn.Module.__getattr__),
        "random state": torch.get_rng_state().tolist(),
    }


def _functions() -> dict[str, Callable[..., Any]]:
    found: dict[str, Callable[..., Any]] = {}
    for package in PACKAGES:
        module = importlib.import_module(f"course_lib.{package}")
        for name in module.__all__:
            if inspect.isfunction(getattr(module, name)) and name not in FREE_OF_INPUTS:
                found[f"{package}.{name}"] = getattr(module, name)
    return found


FUNCTIONS = _functions()


def _called(function: Callable[..., Any], first: Any) -> BaseException | None:
    """Call a function with a program, an input for it, and nothing else that it asks for; return what it raises."""
    required = [one for one in inspect.signature(function).parameters.values() if one.default is one.empty]
    places = [one for one in required if one.kind in (one.POSITIONAL_ONLY, one.POSITIONAL_OR_KEYWORD)]
    named = {one.name: None for one in required if one.kind is one.KEYWORD_ONLY}
    try:
        function(*[first, (X,), *[None] * len(places)][: len(places)], **named)
    except Exception as error:
        return error
    return None


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("given", GIVEN)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_call_that_fails_leaves_torch_and_the_process_as_they_were(name: str, given: str) -> None:
    first = GIVEN[given]()
    before = _state()
    _called(FUNCTIONS[name], first)
    assert _state() == before


def _in_threads(calls: list[Callable[[], Any]]) -> None:
    threads = [threading.Thread(target=call) for call in calls]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


@pytest.mark.filterwarnings("ignore")
def test_failing_calls_in_several_threads_leave_the_process_as_it_was() -> None:
    before, some = _state(), (fuse, compare_modes, capture, propagate_shapes)
    _in_threads([functools.partial(_called, one, _FailsWithin()) for one in some for _ in range(3)])
    after = _state()
    assert {name: after[name] for name in after if name != "random state"} == {
        name: before[name]
        for name in before
        if name != "random state"  # one state for all threads
    }


def test_fuse_in_several_threads_leaves_output_and_warnings_as_they_were(capsys: pytest.CaptureFixture[str]) -> None:
    class Model(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.linear = nn.Linear(3, 3)

        def forward(self, x: Tensor) -> Tensor:
            print("inside")
            return F.gelu(self.linear(x) + 1)

    lost: list[tuple[str, ...]] = []
    before = _state()

    def fused() -> None:
        for _ in range(3):
            lost.append(fuse(Model(), (X,)).lost)

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        _in_threads([fused] * 4)
    after = _state()

    print("outside")
    assert capsys.readouterr().out.endswith("outside\n")
    assert len(lost) == len(caught) == 12
    assert all("prints" in said for one in lost for said in one[:1])
    assert (after["streams"], after["warnings"], after["logs"]) == (
        before["streams"],
        before["warnings"],
        before["logs"],
    )


DERIVATIVES: dict[str, Callable[[Tensor], Any]] = {
    "jvp": lambda x: torch.func.jvp(lambda t: F.gelu(t + 1), (x,), (x,))[1],
    "linearize": lambda x: torch.func.linearize(lambda t: F.gelu(t + 1), x)[1](x),
    "jacfwd": lambda x: torch.func.jacfwd(lambda t: F.gelu(t + 1))(x),
    "grad": lambda x: torch.func.grad(lambda t: F.gelu(t + 1).sum())(x),
}


@pytest.mark.parametrize("case", DERIVATIVES)
def test_each_mode_has_a_row_for_a_derivative_and_none_ends_the_process(case: str) -> None:
    before = _state()
    comparison = compare_modes(DERIVATIVES[case], (X,), modes=("trace", "make_fx", "export", "aot", "lazy"))
    assert _state() == before
    assert set(comparison.verdicts.values()) <= {"captured", "refused"}
    assert comparison.verdicts["make_fx"] == "captured"
    if case != "grad":
        assert "forward-mode derivatives" in comparison["lazy"].why


def test_a_lazy_module_is_named_before_its_first_call() -> None:
    for call in (capture, compare_modes, fuse):
        with pytest.raises(CaptureError, match=r"weight has no shape yet.* Call the model once"):
            call(nn.LazyLinear(3), (X,))


def test_a_failed_run_on_other_shapes_logs_nothing(caplog: pytest.LogCaptureFixture) -> None:
    log = logging.getLogger("torch._subclasses.fake_tensor")
    log.addHandler(caplog.handler)  # PyTorch's logs do not reach those of the root
    try:
        error = _called(fuse, fx.symbolic_trace(lambda x: torch.mm(x, x)))
        assert "cannot run on these example inputs" in str(error)
        assert [one for one in caplog.records if one.name == log.name] == []
    finally:
        log.removeHandler(caplog.handler)
