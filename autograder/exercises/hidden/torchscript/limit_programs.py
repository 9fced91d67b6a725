"""Draw programs that reach one known limit of TorchScript, capture them, and note what one observes.

Only few of the observations decide. So a program has harmless steps, too, of which the tracer warns, and lines around
the construct that the compiler names.
"""

import linecache
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch import nn

from autograder.exercises.questions import Question
from autograder.exercises.torchscript.limits import AGREEMENTS
from autograder.exercises.torchscript.predict_capture import captured_by
from autograder.host.draw import Draw

EXAMPLE, OTHER = [[2.0, 1.0], [0.5, 0.0]], [[-3.0, -1.0], [0.5, 0.25]]

# Steps from y to y; the indented lines of a program's body. {k} is a number, {v} and {w} are names.
BRANCHES = (
    *("y = y * {k} if x.sum() > 0 else y - {k}", "y = y - {k} if x.min() >= 0 else y * {k}"),
    *("y = -y if x[0, 0] == x.max() else y + {k}", "y = y + {k} if x.mean() > 0.1 else -y"),
)
NUMBERS = (
    *("y = y * float(x.sum())", "y = y + int(x.abs().sum() * 10)", "y = y - float(x.max())"),
    *("y = y / (1 + float(x.abs().max()))", "y = y * x.mean().item()"),
)
HARMLESS_BRANCHES = (
    *("y = y * {k} if (x * x).sum() >= 0 else -y", "y = -y if x.abs().max() > 100 else y + {k}"),
    *("y = y + {k} if x.numel() * x.abs().sum() > 0 else y", "y = y - {k} if x.max() > 50 + {k} else y"),
)
HARMLESS_NUMBERS = (
    *("y = y * float(torch.ones({k}).sum())", "y = y + int(torch.arange({k} + 1).max())"),
    *("y = y / float(torch.full(({k},), 2.0).max())", "y = y - int(torch.zeros({k}).sum())"),
)
HARMLESS = (
    *("for row in x:\n    y = y + row", "y = y / len(x)", "y = y + torch.tensor([1.0, {k}.0])"),
    *("y = y * len(y[0])", "y = y - torch.tensor({k}.0)", "first, second = y\ny = y + first - second"),
)
QUIET = ("y = torch.tanh(y)", "y = y + {k}", "y = y / x.shape[0]", "y = torch.relu(y) - {k}", "y = y * 0.{k}")

# Constructs of scripts: those that TorchScript lacks, and those whose type it guesses wrong.
OUTSIDE = (
    "def {v}(z: Tensor) -> Tensor:\n    return z * {k}\ny = {v}(y)",
    "{v} = len({{i // 2 for i in range({k})}})\ny = y * {v}",
    "try:\n    y = y / {k}\nexcept ZeroDivisionError:\n    y = x",
    "async def {v}() -> None:\n    pass\ny = y + {k}",
)
OUTSIDE_ELSEWHERE = (
    "{v} = max((x, y), key=lambda z: float(z.sum()))\ny = y + {v}",
    "if ({v} := y.sum()) > {k}:\n    y = y - {v}",
    "match y.dim():\n    case {k}:\n        y = y * 2",
    "import math\ny = y * math.pi",
    "class {v}:\n    size = {k}\ny = y * {v}.size",
)
UNKNOWN = (
    "{v} = []\n{v}.append(x.shape[0])\ny = y * len({v})",
    "{v} = {{}}\n{v}[{k}] = y\ny = {v}[{k}]",
    "{v} = []\nfor i in range({k}):\n    {v}.append(i)\ny = y * len({v})",
    "{v} = {{}}\n{v}[x.shape[1]] = y + {k}\ny = {v}[2] - {k}",
)
UNKNOWN_ELSEWHERE = (
    "{v} = []\n{v}.append(0.{k})\ny = y * {v}[0]",
    "{v} = None\nif x.sum() > {k}:\n    {v} = y\ny = y if {v} is None else {v}",
    '{v} = {{}}\n{v}["{w}"] = {k}\ny = y * {v}["{w}"]',
    "{v} = []\n{v}.append(len(x))\ny = y * sum({v})",
)
INSIDE = (
    "{v}: list[int] = []\nfor i in range({k}):\n    {v}.append(i)\ny = y * len({v})",
    "{v} = y + {k}\ny = {v} * x.sum()",
    "{v} = y.sum()\nif {v} > {k}:\n    y = y - {v}",
    "{v} = [y, x]\ny = torch.stack({v}).sum(0)",
    "{v} = y * {k}\n{w} = torch.tanh({v})\ny = {w} - {v}",
    '{v} = {{"{w}": y}}\ny = {v}["{w}"] + {k}',
    "{v}, {w} = y.shape\ny = y * {v} + {w}",
)
FIRST = (
    *("row", "head", "mask", "score", "token", "block", "bias", "gate"),
    *("key", "query", "norm", "loss", "rank", "step"),
)
SECOND = ("sizes", "means", "values", "parts", "sums", "scales", "offsets", "pairs", "counts", "limits", "weights")


def drawn(draw: Draw, capture: str, limit: str, *, elsewhere: bool) -> Question:
    """Draw a program that reaches `limit`, and return the evidence; `elsewhere` takes what visible checks do not."""
    while True:  # steps after another may hide a difference, or overflow
        seen = evidence(capture, (_traced if capture == "trace" else _scripted)(draw, limit, elsewhere))
        if _is_evidence(seen, limit):
            return seen


def _is_evidence(seen: Question, limit: str) -> bool:
    if limit in ("outside the language", "unknown type"):
        return bool(seen["error"])
    differs = limit in ("frozen branch", "frozen number"), limit == "frozen mode"
    return bool(seen["same_on_example"]) and differs == (not seen["same_on_others"], not seen["same_in_evaluation"])


def _traced(draw: Draw, limit: str, elsewhere: bool) -> str:
    """Return a program for a trace; with `elsewhere` it has more steps."""
    numbers = limit == "frozen number" or (limit != "frozen branch" and draw.chance(0.5))
    # a program with both could have either limit: the evidence would not say which
    harmless = (*HARMLESS, *(HARMLESS_NUMBERS if numbers else HARMLESS_BRANCHES))
    steps = [draw.choice(harmless) for _ in range(draw.integer(0, 8 if elsewhere else 6))]
    if limit in ("frozen branch", "frozen number"):
        steps += draw.sample(BRANCHES if limit == "frozen branch" else NUMBERS, draw.integer(1, 2 + elsewhere))
    if limit == "frozen mode":
        steps.append(draw.choice(("y = y * 1.{k} if self.training else y", "if self.training:\n    y = y - {k}")))
    if limit == "lost effect" or (limit != "none" and draw.chance(0.5)):
        steps.append("count_call()")
    start = f"y = x * {draw.integer(1, 9)}"
    return _method(draw, "forward", ("x: Tensor",), [start, draw.choice(QUIET), *draw.sample(steps, len(steps))], QUIET)


def _scripted(draw: Draw, limit: str, elsewhere: bool) -> str:
    """Return a program for a script; with `elsewhere` of other kinds."""
    constructs = {
        "outside the language": OUTSIDE_ELSEWHERE if elsewhere else OUTSIDE,
        "unknown type": UNKNOWN_ELSEWHERE if elsewhere else UNKNOWN,
        "none": ("count_call()\ny = y * {k}",) if elsewhere else INSIDE,
    }[limit]
    around = [[draw.choice(INSIDE) for _ in range(draw.integer(1, 3))] for _ in range(2)]
    name = f"{draw.choice(FIRST)}_{draw.choice(SECOND)}"
    part = _method(draw, name, ("x: Tensor", "y: Tensor"), [*around[0], draw.choice(constructs)], INSIDE)
    start = f"y = self.{name}(x, x * {draw.integer(1, 9)})"
    return part + _method(draw, "forward", ("x: Tensor",), [start, *around[1]], INSIDE)


def _method(draw: Draw, name: str, takes: Sequence[str], steps: Sequence[str], around: Sequence[str]) -> str:
    """Return the text of a method that has these steps, and then one of `around`."""
    lines: list[str] = []
    for step in (*steps, draw.choice(around)):
        v, w = (
            f"{first}_{second}" for first, second in zip(draw.sample(FIRST, 2), draw.sample(SECOND, 2), strict=True)
        )
        lines += step.format(k=draw.integer(2, 9), v=v, w=w).splitlines()
    body = "\n".join(f"        {line}" for line in lines)
    return f"    def {name}(self, {', '.join(takes)}) -> Tensor:\n{body}\n        return y\n"


def evidence(capture: str, text: str) -> Question:
    """Capture the program of a text, and return the observations."""
    calls: list[int] = []
    example, other = torch.tensor(EXAMPLE), torch.tensor(OTHER)
    seen: Question = {"capture": capture, "error": "", "warnings": []}
    with warnings.catch_warnings(record=True) as caught, _program(text, calls) as program, _interpreted():
        warnings.simplefilter("always")
        try:
            captured = captured_by(program, capture, example)
        except Exception as error:  # compilers raise many types
            told = f"{type(error).__name__}: {_without_places(str(error))}"
            return seen | {"error": told} | dict.fromkeys(AGREEMENTS)
        seen["warnings"] = [_without_places(str(w.message)) for w in caught if "Tracer" in w.category.__name__]
        return seen | _agreements(program, captured, calls, example, other)


def _interpreted() -> Any:
    """Return a context in which captured programs are not optimised: PyTorch keeps what its executor made for ever."""
    return torch.jit.optimized_execution(False)  # type: ignore[attr-defined]  # public, and not in __all__


@contextmanager
def _program(text: str, calls: list[int]) -> Iterator[nn.Module]:
    """Make the module of a text, whose `count_call()` notes a call and which TorchScript leaves to Python."""

    def count_call() -> None:
        calls.append(1)

    file = f"<program {hash(text)}>"
    names: Question = {"torch": torch, "nn": nn, "Tensor": torch.Tensor, "__name__": "drawn"}
    names["count_call"] = torch.jit.ignore(count_call)
    text = f"class Drawn(nn.Module):\n{text}"
    exec(compile(text, file, "exec", dont_inherit=True), names)
    linecache.cache[file] = (len(text), None, text.splitlines(keepends=True), file)  # where TorchScript reads it
    try:
        yield names["Drawn"]()
    finally:
        del linecache.cache[file]


def _agreements(
    program: nn.Module, captured: Any, calls: list[int], example: torch.Tensor, other: torch.Tensor
) -> Question:
    calls.clear()
    on_example, on_other = (
        torch.equal(captured(example), program(example)),
        torch.equal(captured(other), program(other)),
    )
    counted = len(calls) - 2 if calls else None  # the eager program ran twice
    program.eval()
    captured.eval()
    in_evaluation = torch.equal(captured(example), program(example))
    return dict(zip(AGREEMENTS, (on_example, on_other, in_evaluation, counted), strict=True))


def _without_places(text: str) -> str:
    """Return the text of a message without file paths, at most 2,000 characters."""
    lines = [line for line in text.splitlines() if line.strip() and "File " not in line]
    return " ".join(" ".join(lines).split())[:2000]
