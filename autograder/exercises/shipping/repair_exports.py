"""Exercise 14.2: repair four modules that torch.export refuses, or exports without their state."""

from collections.abc import Callable, Iterator, Sequence

import torch
from torch import Tensor

from autograder.host.artifacts import Artifact
from autograder.host.draw import Draw
from autograder.host.exercise import Check, CheckFailedError, Exercise, Kind
from autograder.host.kinds.callable import Case, Reference, require_outputs
from autograder.host.kinds.captured import Captured, CapturedAnswer, captures, require_inputs
from autograder.host.kinds.misconceptions import Misconception, explained
from autograder.host.session import AnswerFailedError

ROWS, WIDTH = 6, 8
OPERATOR = "torch.ops.course_lib.bias_gelu"
NAMES = ("the output",)


def gate(x: Tensor) -> Tensor:
    """Return 2x if the mean of x is positive, else x - 1."""
    return x * 2 if float(x.mean()) > 0 else x - 1


def smooth(x: Tensor, bias: Tensor) -> Tensor:
    """Return the exact GELU of x + bias."""
    z = x + bias
    return z * torch.special.ndtr(z)


def first(x: Tensor, count: Tensor) -> Tensor:
    """Return the sum of the first `count` rows of x."""
    return torch.stack([x.new_zeros(WIDTH), *x[: int(count)]]).sum(0)


REFERENCES: dict[str, Reference] = {"gate": gate, "smooth": smooth, "first": first}
MISCONCEPTIONS = {
    "gate": (
        Misconception(lambda x: x * 2, "It always doubles. Both branches must be in the graph: torch.cond."),
        Misconception(lambda x: x - 1, "It subtracts where the mean is positive; there it should double."),
        Misconception(
            lambda x: torch.where(x > 0, x * 2, x - 1), "Each element was decided by itself; the mean decides for all."
        ),
    ),
    "smooth": (
        Misconception(lambda x, bias: smooth(x, 0 * bias), "The bias is missing."),
        Misconception(
            lambda x, bias: torch.nn.functional.gelu(x + bias, approximate="tanh"),
            'This is the approximation by tanh; the exact GELU is asked for: approximate="none".',
        ),
    ),
    "first": (
        Misconception(lambda x, count: x.sum(0), "All rows were added, not the first `count` of them."),
        Misconception(
            lambda x, count: first(x, (count + 1).clamp(max=len(x))), "One row too many: rows are counted from 0."
        ),
        Misconception(
            lambda x, count: first(x, count) / count, "The mean of the rows was taken; their sum is asked for."
        ),
    ),
}


def drawn(name: str, draw: Draw, which: float, dtype: torch.dtype = torch.float32) -> tuple[Tensor, ...]:
    """Return inputs of a module; `which` is the shift of the mean for `gate`, and the count of rows for `first`."""
    x = draw.normal(ROWS, WIDTH, dtype=dtype)
    if name == "gate":
        return (x - x.mean() + which,)
    return (x, draw.normal(WIDTH, dtype=dtype)) if name == "smooth" else (x, torch.tensor(int(which)))


def repaired_as(name: str, example: float, cases: Sequence[float], *, dtype: torch.dtype = torch.float32) -> Captured:
    """Return the capture of one repaired module from an example, and cases; see `drawn`."""

    def made(draw: Draw) -> Iterator[Case]:
        for which in cases:
            label = {"gate": f"for a mean of {which}", "first": f"for a count of {which:.0f}"}.get(name, "")
            yield Case(drawn(name, draw, which, dtype), label=label)

    return Captured(
        REFERENCES[name],
        lambda draw: drawn(name, draw, example, dtype),
        made,
        member=name,
        how="export",
        misconceptions=MISCONCEPTIONS[name],
    )


def after(earlier: Sequence[Tensor]) -> Reference:
    """Return what `running` computes after these calls: x minus the mean of all rows so far, x's own included."""
    return lambda x: x - torch.cat([*earlier, x]).mean(0)


FORGETS = Misconception(
    after([]), "It forgot the earlier calls. State is kept in a registered buffer that forward writes in place."
)


def remembers(calls: int) -> Callable[[CapturedAnswer, Draw], None]:
    """Return a check that the program of `running` keeps its state over some calls."""

    def run(answer: CapturedAnswer, draw: Draw) -> None:
        artifact = answer.capture([draw.normal(ROWS, WIDTH)], member="running", how="export")
        require_inputs(artifact, 1, "`running`: ")
        earlier: list[Tensor] = []
        for number in range(calls):
            x = draw.normal(ROWS, WIDTH) + 3 * number
            _require_call(answer, artifact, x, earlier)
            earlier.append(x)

    return run


def _require_call(answer: CapturedAnswer, artifact: Artifact, x: Tensor, earlier: Sequence[Tensor]) -> None:
    """Call the graph once more and compare its result with that of all calls so far."""
    case = Case((x,), label=f"in call {len(earlier) + 1}")
    try:
        reply = answer.run_again([x]) if earlier else answer.run(artifact, [x])
    except AnswerFailedError as error:
        raise CheckFailedError(
            f"`running`: the exported graph does not run{case.where}: {error.message[:300]}"
        ) from None
    try:
        require_outputs(reply, case, after(earlier), NAMES)
    except CheckFailedError as error:
        why = explained(reply, case, NAMES, (FORGETS,)) if earlier else ""
        raise CheckFailedError(f"`running`: {why or error}") from None


def calls_operator(answer: CapturedAnswer, draw: Draw) -> None:
    """Raise `CheckFailedError` unless the program of `smooth` is one call of the course's operator."""
    artifact = answer.capture(drawn("smooth", draw, 0), member="smooth", how="export")
    found = [call.packet for name, call in artifact.called.items() if name not in artifact.dead]  # no checks of sizes
    if found != [OPERATOR]:
        raise CheckFailedError(
            f"`smooth`: the exported graph calls {', '.join(found[:4]) or 'nothing'}; expected {OPERATOR}, once. Call "
            "bias_gelu of course_lib.kernels: a custom operator stays one node of the graph."
        )


EXERCISE = Exercise(
    title="Repair four modules",
    kind=Kind.CAPTURED,
    entry_point="repaired",
    points=14,
    wall_s=120,
    hints=(
        "Each module needs another way to stay a graph: an operator for the branch, a registered buffer for the state, "
        "a custom operator for NumPy's work, and a tensor in place of a number.",
        "torch.cond(predicate, f, g, (x,)) holds both branches. self.register_buffer in __init__, and add_ in forward. "
        "bias_gelu(x, bias) is the operator.",
        "For `first`, compare torch.arange(x.shape[0]) with the count; the result says which rows count, and the rest "
        "become 0.",
    ),
    checks=(
        Check("`gate` for means of both signs", "a branch", 2.0, captures(repaired_as("gate", 0.5, (0.75, -0.25)))),
        Check("`running` in two calls", "state", 2.0, remembers(2)),
        Check("`smooth`", "a foreign kernel", 2.0, captures(repaired_as("smooth", 0, (0, 0)))),
        Check("`first` for some counts", "a number from data", 2.0, captures(repaired_as("first", 3, (4, 2)))),
    ),
)
