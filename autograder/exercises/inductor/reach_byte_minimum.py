"""Exercise 09.2: rewrite four functions so that Inductor moves hardly more bytes than the minimum.

Each of the answer's functions is captured as one graph, which is sent to the host as data. The host compares the
graphs' results with the originals. Inductor lowers the graphs in a clean worker, where no answer can change the count
of bytes.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from autograder.host.artifacts import Artifact
from autograder.host.checks.inductor_checks import Advice, reaches_minimum
from autograder.host.draw import Draw
from autograder.host.exercise import Check, Exercise, Kind
from autograder.host.kinds.callable import Case, Reference
from autograder.host.kinds.captured import Captured, CapturedAnswer
from autograder.host.kinds.misconceptions import Misconception
from autograder.host.speed import Speed
from autograder.host.traced import Program, TensorSpec, Traced

MOST = 1.05  # times the minimum of bytes
COLDEST = 0.1


def soften(x: Tensor, temperature: Tensor) -> Tensor:
    """Return the original result. The branch breaks the graph, so `h` is written to memory and read again."""
    h = x * torch.sigmoid(x)
    if temperature < COLDEST:
        temperature = torch.full_like(temperature, COLDEST)
    return torch.tanh(h / temperature)


def mix(a: Tensor, b: Tensor, weight: Tensor) -> Tensor:
    """Return the original result; the original concatenates both inputs."""
    return torch.cat([a, b], dim=1) @ weight


def shares(x: Tensor) -> Tensor:
    """Return the original result; the original reads x once for its total, and then again."""
    return (x / x.sum()).sum(0)


def scores(q: Tensor, k: Tensor) -> Tensor:
    """Return the original result; the original writes both operands of the product in float32."""
    scaled = q.float() * q.shape[1] ** -0.5
    return (scaled @ k.float().t()).to(q.dtype)


Sizes = tuple[int, ...]


@dataclass(frozen=True)
class Wasteful:
    """One function that moves too many bytes: its reference, its inputs, and common mistakes."""

    reference: Reference
    inputs: Callable[..., Sequence[Tensor]]  # draws random inputs of given sizes
    names: Sequence[str]
    misconceptions: Sequence[Misconception]
    advice: Sequence[Advice] = ()


JOINED = (
    *("cat", "concat", "concatenate", "stack", "hstack", "vstack", "column_stack", "row_stack"),
    *("pad", "constant_pad_nd", "slice_scatter"),
)

FUNCTIONS = {
    "soften": Wasteful(
        soften,
        lambda draw, *sizes: (draw.normal(*sizes), torch.tensor(draw.choice((0.3, 0.5, 2.0)))),
        ("the output",),
        (
            Misconception(
                lambda x, t: torch.tanh(x * torch.sigmoid(x) / t),
                "The lower limit of the temperature is gone: below 0.1 it is to be 0.1.",
            ),
            Misconception(
                lambda x, t: torch.tanh(x * torch.sigmoid(x) / t.clamp(max=COLDEST)),
                "The limit became an upper one; the temperature is to be 0.1 at least.",
            ),
            Misconception(
                lambda x, t: torch.tanh(x * torch.sigmoid(x / t.clamp(min=COLDEST))),
                "The temperature went into the sigmoid; all of h is divided by it.",
            ),
        ),
        (
            Advice(
                (),
                "Something as large as x is written and read again: all steps can be one chain from x to the result.",
            ),
        ),
    ),
    "mix": Wasteful(
        mix,
        lambda draw, rows, left, right: (
            draw.normal(rows, left),
            draw.normal(rows, right),
            draw.normal(left + right, 2),
        ),
        ("the product",),
        (
            Misconception(
                lambda a, b, w: a @ w[: a.shape[1]],
                "Only the share of a is there; b times its own rows of weight is added to it.",
            ),
            Misconception(
                lambda a, b, w: a @ w[-a.shape[1] :] + b @ w[: b.shape[1]],
                "The rows of weight were swapped; the first ones belong to a, which stands first.",
            ),
        ),
        (
            Advice(
                JOINED,
                "The two inputs are still written side by side. A product with a joined matrix is a sum of products.",
            ),
            Advice(
                (),
                "Something is written before a product, which reads it from memory: multiply the inputs as they are.",
            ),
        ),
    ),
    "shares": Wasteful(
        shares,
        lambda draw, rows, width: (draw.normal(rows, width).abs() + 0.5,),  # positive, so that no total is near zero
        ("the shares",),
        (
            Misconception(
                lambda x: (x / x.sum(0)).sum(0),
                "Each column was divided by its own sum; there is one total, that of all of x.",
            ),
            Misconception(
                lambda x: x.sum(0) / x.mean(),
                "The columns were divided by the mean; the original divides by the total.",
            ),
            Misconception(lambda x: x.mean(0) / x.sum(), "Columns were averaged; the original adds them up."),
            Misconception(
                lambda x: (x / x.sum()).sum(1), "Rows were added up; sum(0) adds along the rows and leaves the columns."
            ),
        ),
        (
            Advice(
                ("sum", "mean"),
                "x is read for the total, and again for the columns. What is left of x once its columns are summed?",
            ),
            Advice((), "x is read twice, or something as large as x is written."),
        ),
    ),
    "scores": Wasteful(
        scores,
        lambda draw, rows, width: (
            draw.normal(rows, width, dtype=torch.float16),
            draw.normal(4, width, dtype=torch.float16),
        ),
        ("the scores",),
        (
            Misconception(lambda q, k: q @ k.t(), "The scale is gone; it is one over the root of the width."),
            Misconception(
                lambda q, k: (q @ k.t()) / q.shape[1],
                "It was scaled twice; one over the root of the width is meant, once.",
            ),
        ),
        (
            Advice(
                ("to", "_to_copy", "float", "type_as"),
                "Operands are still converted, and a product needs them in memory: in float32 they are written and "
                "read again at twice the size. A product of float16 adds in float32 by itself.",
            ),
            Advice(
                ("mul", "div"),
                "Something large is scaled before the product and written for it; where is the tensor small?",
            ),
            Advice(
                (), "Something as large as q is written beside the scores: hand q and k to the product as they are."
            ),
        ),
    ),
}


def _cold(name: str, inputs: Sequence[Tensor]) -> Iterator[Case]:
    """Yield a case with a temperature below the limit."""
    if name == "soften":
        yield Case((inputs[0], torch.tensor(0.03)), label="for a temperature below the limit")


def at(name: str, *several: Sizes) -> Callable[[CapturedAnswer, Draw], None]:
    """Return a check on one function, captured once for each of `several` sizes."""
    function = FUNCTIONS[name]

    def wanted(sizes: Sizes) -> Captured:
        def cases(draw: Draw) -> Iterator[Case]:
            inputs = tuple(function.inputs(draw, *sizes))
            yield Case(inputs, label=f"for a first input of shape {tuple(inputs[0].shape)}")
            yield from _cold(name, inputs)

        return Captured(
            function.reference,
            lambda draw: function.inputs(draw, *sizes),
            cases,
            function.names,
            member=name,
            misconceptions=function.misconceptions,
        )

    return reaches_minimum(*map(wanted, several), most=MOST, advice={name: function.advice})


OPERATOR_BY_OPERATOR = (
    "Shown, not graded: the clock runs `shares` operator by operator. The points count the bytes of Inductor's code, "
    "which also fuses what this graph computes in several steps."
)


def speed_of_shares(rows: int, width: int, ideal_ratio: float, on_gpu: Speed | None = None) -> Speed:
    """Return the line that times the graph of `shares`, operator by operator, against the original.

    The original reads x, reads it again, writes a quotient of its size, and reads that; one reading is enough. On a CPU
    the first reading takes as long as the others together, since the others find x in the cache.
    """

    def graph_of(answer: CapturedAnswer, source: Traced) -> Artifact:
        return answer.capture([torch.ones(s.shape) for s in source.program.inputs], member="shares")

    program = Program("`shares`", lambda: shares, (TensorSpec((rows, width)),), 0)
    return Speed(
        program,
        ideal_ratio,
        graph_of=graph_of,
        drawn=lambda x: x.abs_().add_(0.5),
        shown_only=OPERATOR_BY_OPERATOR,
        on_gpu=on_gpu,
    )


WORDS = {"soften": "graph break", "mix": "copy", "shares": "two reductions", "scores": "dtypes"}
SIZES: dict[str, Sizes] = {"soften": (96, 128), "mix": (256, 96, 160), "shares": (256, 128), "scores": (512, 256)}

EXERCISE = Exercise(
    title="Reach the byte minimum",
    kind=Kind.CAPTURED,
    entry_point="lean",
    points=14,
    wall_s=90,
    speed=speed_of_shares(4096, 1024, 2.0, on_gpu=speed_of_shares(32768, 1024, 4.0)),
    hints=(
        "For each function name the tensor that is written although nobody asked for it, or read twice: print "
        "lowered(...).code if you do not see it.",
        "soften: limit the temperature without asking Python. mix: multiply before you join. shares: divide what is "
        "small. scores: convert nothing, and scale where little has to be scaled.",
        "clamp(min=...) limits a tensor from below; weight[:n] and weight[n:] are views, which cost nothing; the total "
        "of x is also that of its column sums; a product of float16 tensors is rounded once, at its end.",
    ),
    checks=tuple(
        Check(
            f"`{name}` moves at most {MOST} times the minimum, with the right values",
            word,
            2,
            at(name, SIZES[name]),
            speed=name == "shares",
        )
        for name, word in WORDS.items()
    ),
)
