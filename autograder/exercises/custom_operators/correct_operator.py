"""Exercise 11.6: two operators that keep all their promises: form, derivative, declared writes, memory of their own.

The text of the operators runs where no other Python of the student is. There the checks reach them by name through the
dispatcher, on real tensors, on fake ones, and on fake ones whose sizes are symbols.
"""

from collections.abc import Callable, Iterator
from dataclasses import replace

import torch
from torch.nn import functional as F

from autograder.exercises.operator_promises import formed, honest
from autograder.host.checks.function_checks import Run, agrees, gradients_agree
from autograder.host.draw import Draw
from autograder.host.exercise import Check, CheckFailedError, Exercise, Kind
from autograder.host.kinds.callable import CallableAnswer, Case
from autograder.host.kinds.misconceptions import Misconception, explained

MAX_RANK = 8
GATE, APPEND = "torch.ops.lesson11.silu_gate", "torch.ops.lesson11.append_rows"
Cases = Callable[[Draw], Iterator[Case]]
Form = Callable[..., tuple[int, ...]]


def silu_gate(x: torch.Tensor) -> torch.Tensor:
    """Return silu of the first half of the columns, times the second half."""
    gate, value = x.chunk(2, -1)
    return F.silu(gate) * value


def filled(cache: torch.Tensor, rows: torch.Tensor, at: int) -> torch.Tensor:
    """Return the rows of the cache up to the end of the new ones."""
    return torch.cat([cache[:at], rows])


def written(cache: torch.Tensor, rows: torch.Tensor, at: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Return both tensors as a right call leaves them."""
    return torch.cat([cache[:at], rows, cache[at + rows.shape[0] :]]), rows


def half_shape(x: torch.Tensor) -> tuple[int, ...]:
    """Return the shape of the gated result."""
    return (*x.shape[:-1], x.shape[-1] // 2)


def filled_shape(cache: torch.Tensor, rows: torch.Tensor, at: int) -> tuple[int, ...]:
    """Return the shape of the filled part."""
    return (at + rows.shape[0], cache.shape[1])


def _slope(z: torch.Tensor) -> torch.Tensor:
    s = torch.sigmoid(z)
    return s * (1 + z * (1 - s))


VALUES = (
    Misconception(lambda x: F.glu(x.roll(x.shape[-1] // 2, -1)), "The gate is sigmoid(gate); silu is gate · sigmoid."),
    Misconception(
        lambda x: silu_gate(x.roll(x.shape[-1] // 2, -1)),
        "The halves are swapped: silu takes the first half of the columns, and the second half is the factor.",
    ),
    Misconception(
        lambda x: F.silu(x[..., ::2]) * x[..., 1::2],
        "The columns are taken in turn; the gate is the first half of them, x[..., :n].",
    ),
    Misconception(
        lambda x: F.gelu(x.chunk(2, -1)[0]) * x.chunk(2, -1)[1], "The gate goes through gelu; silu is asked."
    ),
)
GRADIENTS = (
    Misconception(
        lambda x, g: torch.cat(
            [g * x.chunk(2, -1)[1] * torch.sigmoid(x.chunk(2, -1)[0]), g * F.silu(x.chunk(2, -1)[0])], -1
        ),
        "The gradient of the gate lacks a part: silu(z) = z · s(z) is a product, with derivative s + z · s · (1 - s).",
    ),
    Misconception(
        lambda x, g: torch.cat([g * F.silu(x.chunk(2, -1)[0]), g * x.chunk(2, -1)[1] * _slope(x.chunk(2, -1)[0])], -1),
        "The halves of the gradient are swapped: the gradient of the gate stands first, as the gate in x.",
    ),
    Misconception(
        lambda x, g: torch.cat([x.chunk(2, -1)[1] * _slope(x.chunk(2, -1)[0]), F.silu(x.chunk(2, -1)[0])], -1),
        "The derivative is not multiplied by g, the gradient of the result.",
    ),
)
LEFT = (
    Misconception(
        lambda cache, rows, at: (cache, rows), "The cache is as before: write rows into it, cache[...] = rows."
    ),
    Misconception(
        lambda cache, rows, at: (torch.cat([rows, cache[rows.shape[0] :]]), rows),
        "The rows were written to the beginning of the cache; they belong to row `at` and those behind it.",
    ),
)


def gated(*shapes: tuple[int, ...], dtype: torch.dtype = torch.float32) -> Cases:
    """Return calls of the gate on tensors of these shapes."""

    def cases(draw: Draw) -> Iterator[Case]:
        for shape in shapes:
            yield Case((draw.normal(*shape, dtype=dtype),), label=f"for x of shape {shape}")

    return cases


def appended(*sizes: tuple[int, int, int, int], dtype: torch.dtype = torch.float32) -> Cases:
    """Return calls of `append_rows`, each of cache rows, columns, new rows and their place."""

    def cases(draw: Draw) -> Iterator[Case]:
        for length, columns, count, at in sizes:
            label = f"for {count} rows at {at} of a cache of {length} × {columns}"
            cache, rows = draw.normal(length, columns, dtype=dtype), draw.normal(count, columns, dtype=dtype)
            yield Case((cache, rows, at), label=label)

    return cases


def derived(cases: Cases) -> Run:
    """Return a check of values and gradients of the gate; a known wrong gradient is named."""
    plain = gradients_agree(silu_gate, cases, ("the result",), ("x",))

    def run(answer: CallableAnswer, draw: Draw) -> None:
        operator = honest(answer, GATE)
        try:
            plain(operator, draw)
        except CheckFailedError as error:
            for case in cases(draw):
                g = draw.normal(*half_shape(case.args[0]), dtype=case.args[0].dtype)
                reply = operator.call(case, cotangents=[g], wrt=[0])
                if found := tuple(gradient for gradient in reply.gradients if gradient is not None):
                    shown = replace(reply, outputs=found)
                    known = explained(shown, Case((*case.args, g)), ("the gradient",), GRADIENTS)
                    raise CheckFailedError(known or str(error)) from None
            raise
        for case in cases(draw):
            nodes = _numbers(answer.function(f"recorded nodes of {GATE}"), case)
            if nodes != [1]:
                raise CheckFailedError(
                    f"Autograd records {sum(nodes)} nodes for one call{case.where}; expected 1, the operator. "
                    "It sees the formula and derives that. Give the operator its own derivative: register_autograd."
                )

    return run


def right_values(name: str, formula: Callable[..., object], cases: Cases, known: tuple[Misconception, ...] = ()) -> Run:
    """Return a check that the operator returns what the formula says."""
    plain, writes = agrees(formula, cases, ("the result",), known), (0,) if name == APPEND else ()
    return lambda answer, draw: plain(honest(answer, name, writes=writes), draw)


def appends(cases: Cases) -> Run:
    """Return a check that rows get into the cache, and that the filled part is returned in memory of its own."""
    left = agrees(written, cases, ("the cache after the call", "rows after the call"), LEFT)
    returned = agrees(filled, cases, ("the result",))

    def run(answer: CallableAnswer, draw: Draw) -> None:
        left(answer.function(f"tensors after {APPEND}"), draw)
        returned(honest(answer, APPEND, writes=(0,)), draw)
        for case in cases(draw):
            if answer.function(APPEND).call(case).aliases:
                raise CheckFailedError("The result lies in the memory of the cache: return a copy, .clone().")

    return run


def only_result(answer: CallableAnswer, case: Case) -> torch.Tensor:
    """Return the one result of a call; raises `CheckFailedError` for another number."""
    outputs = answer.call(case).outputs
    if len(outputs) != 1:
        raise CheckFailedError(f"The operator has {len(outputs)} results; expected 1.")
    return outputs[0]


def _numbers(answer: CallableAnswer, case: Case) -> list[int]:
    found = only_result(answer, case)
    if found.dtype != torch.int64 or found.dim() != 1 or found.numel() > 2 * MAX_RANK:
        raise CheckFailedError(f"The operator has a result of another form than a tensor of at most {MAX_RANK} sizes.")
    return [int(number) for number in found.tolist()]


def transposed(draw: Draw) -> Iterator[Case]:
    """Return a transposed input of the gate."""
    yield Case((draw.normal(8, 5).t(),), label="for a transposed x")


def gate_formed(*cases: Cases) -> Run:
    """Return a check of the form of gated results, as it is declared and as it is."""
    return formed(GATE, lambda *args: [half_shape(*args)], ("the result",), *cases, dtypes=False)


def filled_formed(*cases: Cases) -> Run:
    """Return a check of the form of the filled part of a cache, as it is declared and as it is."""
    shapes = lambda *args: [filled_shape(*args)]  # noqa: E731
    return formed(APPEND, shapes, ("the result",), *cases, writes=(0,), dtypes=False)


def both(*runs: Run) -> Run:
    """Return a check that runs all of these."""

    def run(answer: CallableAnswer, draw: Draw) -> None:
        for each in runs:
            each(answer, draw)

    return run


def follows_sizes(name: str, shape: Form, pairs: Cases) -> Run:
    """Return a check that the fake kernel computes with symbols: asked once, its shape is right for other sizes."""

    def run(answer: CallableAnswer, draw: Draw) -> None:
        shown, asked = pairs(draw)
        pair = Case((*shown.args, *asked.args), label=asked.label)
        found = tuple(_numbers(answer.function(f"symbolic shapes of {name}"), pair))
        wanted = shape(*asked.args)
        if found != wanted:
            raise CheckFailedError(
                f"The fake kernel was asked once, with symbols for sizes; its formula gives {found}"
                f"{pair.where}, and {wanted} is right. Compute with the sizes of the arguments, without int(...) and "
                "without numbers of an example."
            )

    return run


def declares(wanted: tuple[int, ...]) -> Run:
    """Return a check that the schema says of each argument whether it is written."""

    def run(answer: CallableAnswer, draw: Draw) -> None:
        (case,) = appended((5, 4, 2, 1))(draw)
        found = tuple(_numbers(answer.function(f"declared writes of {APPEND}"), case))
        names = [name for name, here in zip(("cache", "rows", "at"), found, strict=False) if here]
        if found != wanted:
            raise CheckFailedError(
                f"The schema declares writes to {', '.join(names) or 'nothing'}; the operator writes to cache alone. A "
                'compiler drops or moves a call by what the schema says: mutates_args=("cache",).',
                changes="cache" not in names,
            )

    return run


EXERCISE = Exercise(
    title="Two operators that keep their promises",
    kind=Kind.CALLABLE,
    entry_point="silu_gate",
    points=12,
    hints=(
        "Each operator has three or four parts: the kernel, the names of the arguments that it writes to, the fake "
        "kernel, and for the gate what forward saves and the gradient.",
        "The fake kernels: x.new_empty(...) with sizes computed from x.shape, and cache.new_empty(...) with at plus "
        "the number of rows. Slices of the cache share its memory; .clone() does not.",
        "With s = sigmoid(gate): the gradient of the gate is g · value · s · (1 + gate · (1 - s)), that of the value "
        "g · gate · s; torch.cat puts them side by side.",
    ),
    checks=(
        Check("silu_gate: values", "values", 1, right_values(GATE, silu_gate, gated((3, 8), (2, 4, 6)), VALUES)),
        Check("silu_gate: gradient", "gradients", 2, derived(gated((4, 10)))),
        Check(
            "silu_gate: form without data, and of its results",
            "declared form",
            1,
            gate_formed(gated((3, 8), (2, 5, 12)), transposed),
        ),
        Check("append_rows: written and returned", "values", 1.5, appends(appended((6, 4, 2, 3), (7, 5, 3, 1)))),
        Check(
            "append_rows: form without data, and of its result",
            "declared form",
            0.5,
            filled_formed(appended((6, 4, 2, 3))),
        ),
        Check("append_rows: declared write", "declared writes", 1, declares((1, 0, 0))),
    ),
)
