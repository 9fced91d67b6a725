"""Programs become graphs that do the same; programs that cannot say why, where, and what to try."""

import math
from collections.abc import Callable
from typing import Any, cast

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import nn

from course_lib.capture import capture
from course_lib.errors import CaptureError


class Block(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.inner = nn.Sequential(nn.Linear(3, 3), nn.GELU())

    def forward(self, x: torch.Tensor, mask: torch.Tensor | None = None, times: int = 2) -> torch.Tensor:
        h = cast(torch.Tensor, self.inner(x))
        if mask is not None:
            h = h + mask
        for _ in range(times):
            h = F.silu(h)
        return h


def test_the_graph_computes_what_the_program_computes() -> None:
    model, x, mask = Block().eval(), torch.randn(2, 3), torch.randn(3)
    captured = capture(model, concrete_args={"times": 3})
    assert torch.equal(captured.graph_module(x, mask), model(x, mask, 3))
    assert captured.mode == "fx"
    assert captured.code == captured.graph_module.code
    assert not captured.graph_module.training


@pytest.mark.parametrize("times", [0, 3])
def test_fixed_arguments_leave_no_trace_in_the_graph(times: int) -> None:
    model, x = Block(), torch.randn(2, 3)
    captured = capture(model, concrete_args={"mask": None, "times": times})
    assert [node.name for node in captured.graph.nodes if node.op == "placeholder"] == ["x"]
    assert not [node for node in captured.graph.nodes if "assert" in node.name]
    assert torch.equal(captured.graph_module(x), model(x, None, times))


def test_each_node_knows_its_line() -> None:
    captured = capture(Block(), concrete_args={"times": 1})
    assert captured.lines["add"].text == "h = h + mask"
    assert captured.lines["silu"].function == "forward"
    assert captured.lines["inner_0"].text == "h = cast(torch.Tensor, self.inner(x))"
    assert "x" not in captured.lines
    stack_trace = next(node.stack_trace for node in captured.graph.nodes if node.name == "add")
    assert "h = h + mask" in cast(str, stack_trace)


@pytest.mark.parametrize("leaf", [nn.Sequential, "inner"])
def test_a_leaf_stays_one_node(leaf: type[nn.Module] | str) -> None:
    modules = [
        [node.target for node in capture(Block(), leaf_modules=leaves, concrete_args={"times": 1}).graph.nodes]
        for leaves in ((), (leaf,))
    ]
    assert "inner.0" in modules[0]
    assert "inner" in modules[1]
    assert "inner.0" not in modules[1]


def branches(x: torch.Tensor) -> torch.Tensor:
    if x.sum() > 0:
        return x
    return -x


def loops(x: torch.Tensor) -> list[torch.Tensor]:
    return [torch.relu(row) for row in x]


def repeats(x: torch.Tensor) -> list[torch.Tensor]:
    return [x for _ in range(x.shape[0])]


def measures(x: torch.Tensor) -> int:
    return len(x)


def slices(x: torch.Tensor) -> torch.Tensor:
    return torch.zeros(5)[: x.shape[0]]


def converts(x: torch.Tensor) -> float:
    return float(x.sum())


def leaves_torch(x: torch.Tensor) -> object:
    return np.sin(x)


def returns_an_object(x: torch.Tensor) -> object:
    return object()


def is_wrong_anyway(x: torch.Tensor) -> object:
    return x / (1 // 0)


FAILURES: list[tuple[Callable[[torch.Tensor], object], str, str]] = [
    (branches, "decides by the value", "if x.sum() > 0:"),
    (loops, "loops over", "for row in x"),
    (repeats, "whole number", "range(x.shape[0])"),
    (measures, "length", "return len(x)"),
    (slices, "whole number", "torch.zeros(5)"),
    (converts, "Python number", "float(x.sum())"),
    (leaves_torch, "NumPy", "np.sin(x)"),
    (is_wrong_anyway, "ZeroDivisionError", "1 // 0"),
]


@pytest.mark.parametrize(("program", "why", "where"), FAILURES, ids=[case[0].__name__ for case in FAILURES])
def test_a_failure_says_why_and_where(program: Callable[[torch.Tensor], object], why: str, where: str) -> None:
    with pytest.raises(CaptureError) as caught:
        capture(program)
    sentence = str(caught.value)
    assert sentence.startswith(f"fx could not capture {program.__name__} at test_capture.py:")
    assert why in sentence
    assert where in sentence
    assert caught.value.__cause__ is not None


def test_an_object_that_a_graph_cannot_hold_is_named_as_the_cause() -> None:
    with pytest.raises(CaptureError, match="a graph cannot hold"):
        capture(returns_an_object)


def test_the_line_of_a_failure_inside_a_module_is_the_modules_own() -> None:
    class Gate(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return branches(x) * math.pi

    with pytest.raises(CaptureError, match=r"capture Gate at test_capture.py:\d+, in branches"):
        capture(Gate())


def test_an_unknown_mode_and_something_uncallable_are_refused() -> None:
    with pytest.raises(CaptureError, match="it knows 'trace', 'script', 'fx'"):
        capture(branches, mode="guess")
    with pytest.raises(CaptureError, match="expects a module or a function"):
        capture(cast(nn.Module, 3))


LAMBDAS = [
    lambda x: x + 1,
    *(lambda x: x * 2 for _ in range(1)),
]
alone = lambda x: x + 1  # noqa: E731  # a lambda on a line of its own is the case


@pytest.mark.parametrize("program", [*LAMBDAS, alone])
def test_torchscript_says_that_it_cannot_read_a_lambda(program: Callable[[torch.Tensor], object]) -> None:
    with pytest.raises(CaptureError, match=r"cannot be found or read\. Write the program with def"):
        capture(program, mode="script")


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ({"leaf_modules": ("outer",)}, "no module at this path; it has 'inner', 'inner.0'"),
        ({"leaf_modules": "inner"}, "got leaf_modules='inner'; it expects several"),
        ({"leaf_modules": nn.ReLU}, r"got leaf_modules=ReLU; it expects several, such as \(ReLU,\)"),
        ({"leaf_modules": None}, r"got leaf_modules=None; it expects several, such as \(torch.nn.Linear,\)"),
        ({"leaf_modules": (nn.ReLU(),)}, "a leaf module of type ReLU; it expects a class, or the path"),
        ({"concrete_args": {"tims": 1}}, "no argument of this name; it has 'x', 'mask', 'times'"),
        ({"concrete_args": (1,)}, r"got concrete_args=\(1,\); it expects a dict"),
    ],
    ids=["path", "text", "class", "nothing", "module", "name", "tuple"],
)
def test_a_leaf_or_an_argument_that_the_program_does_not_have_is_named(arguments: Any, sentence: str) -> None:
    with pytest.raises(CaptureError, match=sentence):
        capture(Block(), **{"concrete_args": {"times": 1}, **arguments})


NUMPY_NUMBERS: dict[str, Callable[[torch.Tensor], Any]] = {
    "divisor": lambda x: x / np.sqrt(64),
    "on the left": lambda x: np.float64(2) * x - 1,
    "index": lambda x: x[np.int64(1), : np.int32(2)],
    "keyword": lambda x: x.clamp(min=np.float32(0.5)).sum(dim=np.int64(0)),
    "power and comparison": lambda x: torch.where(np.float64(1) < x, np.float64(2) ** x, np.float16(0.5)),
}


@pytest.mark.parametrize("case", NUMPY_NUMBERS)
def test_numbers_of_numpy_are_numbers_of_python_in_a_graph_of_fx(case: str) -> None:
    program, x = NUMPY_NUMBERS[case], torch.linspace(-2.0, 2.0, 6).reshape(2, 3)
    captured = capture(program, (x,))
    assert torch.equal(captured.run(x), program(x))
    assert "np." not in captured.code


def test_an_array_or_a_function_of_numpy_on_a_stand_in_is_a_clear_error() -> None:
    for program in (lambda x: x / np.sqrt(x.shape[-1]), lambda x: np.exp(x)):
        with pytest.raises(CaptureError, match="to NumPy"):
            capture(program, (torch.ones(2, 3),))


@pytest.mark.parametrize("key", ["class", "import", "None", "lambda", "in"])
def test_a_part_whose_name_is_a_keyword_of_python_is_named(key: str) -> None:
    class Heads(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.heads = nn.ModuleDict({key: nn.Linear(4, 2)})

        def forward(self, x: torch.Tensor) -> Any:
            return self.heads[key](x)

    with pytest.raises(CaptureError, match=f"cannot write 'heads.{key}' as code, since '{key}' is a keyword"):
        capture(Heads(), (torch.ones(2, 4),))


WRITTEN = {  # argument -> code of a graph that means something else by the name
    "torch": "F.gelu(torch + y)",
    "self": "F.gelu(self + y)",
    "inf": "inf + y * float('inf')",
    "nan": "nan + y * float('nan')",
    "device": "y.to(T.device('cpu')) + device",
}


def _with_argument(name: str, body: str) -> Callable[..., Any]:
    program: Callable[..., Any] = eval(f"lambda {name}, y: {body}", {"F": F, "T": torch})
    return program


@pytest.mark.parametrize("argument", WRITTEN)
def test_an_argument_whose_name_a_graph_needs_is_named(argument: str) -> None:
    program = _with_argument(argument, WRITTEN[argument])
    with pytest.raises(CaptureError, match=f"cannot write its argument '{argument}'.* such as {argument}_"):
        capture(program, (torch.ones(3), torch.ones(3)))


@pytest.mark.parametrize(
    ("argument", "body", "given"),
    [
        ("device", "y.to(device)", "cpu"),
        ("torch", "torch + y", torch.ones(3)),
        ("input", "F.gelu(input + y)", torch.ones(3)),
        ("type", "y.to(T.device('cpu')) + type", torch.ones(3)),
        ("inf", "inf + y", 2.0),
    ],
)
def test_such_an_argument_is_taken_where_the_graph_does_not_need_its_name(argument: str, body: str, given: Any) -> None:
    program = _with_argument(argument, body)
    graph = capture(program, (given, torch.ones(3))).graph_module
    torch.testing.assert_close(graph(given, torch.zeros(3)), program(given, torch.zeros(3)))
