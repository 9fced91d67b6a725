"""Where Dynamo captures a part of a program, the capture says so: the part does not pass for the whole."""

import asyncio
import functools
import threading
from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from course_lib.capture import capture, compare_modes
from course_lib.errors import CaptureError
from course_lib.fusion import fuse

X, BIAS = torch.linspace(-1.0, 1.0, 6).reshape(2, 3), torch.linspace(0.0, 1.0, 3)


@torch.compiler.disable(recursive=False)
def _outside(x: Tensor) -> Tensor:
    return F.gelu(x)


def _evaluates(x: Tensor, b: Tensor) -> Any:
    return eval("F.gelu(x + b)") + F.gelu(x + 2)


def _executes(x: Tensor, b: Tensor) -> Any:
    names: dict[str, Any] = {}
    exec("import torch.nn.functional as F\ndef inner(x, b): return F.gelu(x + b)", names)
    return names["inner"](x, b) + x


def _in_a_thread(x: Tensor, b: Tensor) -> Tensor:
    results: list[Tensor] = []
    thread = threading.Thread(target=lambda: results.append(F.gelu(x + b)))
    thread.start()
    thread.join()
    return results[0] * 2


def _linearizes(x: Tensor, b: Tensor) -> Any:
    return torch.func.linearize(lambda t: F.gelu(t + b), x)[1](x)


def _calls_what_is_disabled(x: Tensor, b: Tensor) -> Tensor:
    return _outside(x) + b


def _prints_first(x: Tensor, b: Tensor) -> Tensor:
    print("begin")
    return F.gelu(x + b)


def _loops_by_a_value(x: Tensor, b: Tensor) -> Tensor:
    for _ in range(3):
        if _plain(x, b).sum() > 0:
            x = x - b
    return x


def _plain(x: Tensor, b: Tensor) -> Tensor:
    return F.gelu(x + b)


@torch.no_grad()
def _decorated(x: Tensor, b: Tensor) -> Tensor:
    return F.gelu(x + b)


class _Hooked(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.register_forward_hook(lambda module, inputs, result: result * 2)

    def forward(self, x: Tensor, b: Tensor) -> Tensor:
        return F.gelu(x + b)


class _Object:
    def __call__(self, x: Tensor, b: Tensor) -> Tensor:
        return F.gelu(x + b)


PARTS = {
    _evaluates: "`eval`",
    _executes: "`exec`",
    _in_a_thread: "RLock|get_ident",
    _linearizes: "should not be traced",
    _calls_what_is_disabled: "wrapped with `torch.compiler.disable`",
    _prints_first: "something is printed",
    _loops_by_a_value: "leaves the outermost function to Python",
}
WHOLE: dict[str, Callable[..., Any]] = {
    "function": _plain,
    "decorated": _decorated,
    "hooked": _Hooked(),
    "object": _Object(),
    "partial": functools.partial(_plain, b=BIAS),
    "vmap": lambda x, b: torch.func.vmap(lambda t: F.gelu(t + b))(x),
    "jvp": lambda x, b: torch.func.jvp(lambda t: F.gelu(t + b), (x,), (x,))[1],
    "generator": lambda x, b: sum(x * number for number in range(3)) + b,
    "checkpoint": lambda x, b: torch.utils.checkpoint.checkpoint(_plain, x, b, use_reentrant=False),
    "bilinear": nn.Bilinear(3, 3, 2),
}


@pytest.mark.parametrize("program", PARTS, ids=lambda program: program.__name__)
def test_a_part_is_named_as_one_and_is_not_handed_out_as_the_graph(program: Callable[..., Any]) -> None:
    captured = capture(program, (X, BIAS), mode="dynamo")
    assert captured.graphs
    with pytest.raises(CaptureError, match=PARTS[program]):
        _ = captured.graph_module
    with pytest.raises(CaptureError, match=PARTS[program]):
        fuse(captured, (X, BIAS))


@pytest.mark.parametrize("case", WHOLE)
def test_a_whole_program_has_no_break(case: str) -> None:
    inputs = (X,) if case == "partial" else (X, X) if case == "bilinear" else (X, BIAS)
    captured = capture(WHOLE[case], inputs, mode="dynamo")
    assert (len(captured.graphs), captured.breaks) == (1, ())
    assert captured.graph_module is captured.graphs["graph"]


def test_the_comparison_says_that_python_runs_in_between() -> None:
    result = compare_modes(_evaluates, (X, BIAS), modes=("dynamo",))["dynamo"]
    assert result.why.startswith("1 graph, and Python in between: Dynamo does not know how to trace builtin operator")


@pytest.mark.parametrize("program", [nn.Linear(3, 2), torch.no_grad()(lambda x: F.gelu(x + 1))])
def test_code_of_pytorch_is_captured_as_often_as_it_is_asked_for(program: Callable[..., Any]) -> None:
    for _ in range(torch._dynamo.config.recompile_limit + 2):
        assert len(capture(program, (X,), mode="dynamo").graphs) == 1


async def _asynchronous(x: Tensor, b: Tensor) -> Tensor:
    return F.gelu(x + b)


def _drives_a_coroutine(x: Tensor, b: Tensor) -> Any:
    async def inner() -> Tensor:
        return F.gelu(x + b)

    try:
        inner().send(None)
    except StopIteration as end:
        return end.value


def _runs_a_coroutine(x: Tensor, b: Tensor) -> Tensor:
    return asyncio.run(_asynchronous(x, b))


class _Serves(nn.Module):
    """A model with a coroutine that its `forward` does not drive."""

    async def serve(self, x: Tensor, b: Tensor) -> Any:
        return self(x, b)

    def forward(self, x: Tensor, b: Tensor) -> Tensor:
        return F.gelu(x + b)


@pytest.mark.parametrize(("program", "name"), [(_drives_a_coroutine, "inner"), (_runs_a_coroutine, "_asynchronous")])
def test_a_coroutine_is_refused_before_dynamo_sees_it(program: Callable[..., Any], name: str) -> None:
    with pytest.raises(CaptureError, match=rf"drives a coroutine.* 'export'. \(RuntimeError: .*: {name}\)"):
        capture(program, (X, BIAS), mode="dynamo")
    assert compare_modes(program, (X, BIAS), modes=("dynamo", "make_fx")).verdicts == {
        "dynamo": "refused",
        "make_fx": "captured",
    }


def test_a_coroutine_that_is_not_driven_is_no_obstacle() -> None:
    assert len(capture(_Serves(), (X, BIAS), mode="dynamo").graphs) == 1
