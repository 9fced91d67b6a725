"""Exercise 09.3: read generated code, and describe its loops, its reductions and its masked reads.

The code is C++ of random programs, in its simplest form. The host lowers its own programs and compiles none.
"""

from collections.abc import Callable, Sequence
from typing import Any, TypedDict

from autograder.exercises.questions import Known, kept
from autograder.host.draw import Draw
from autograder.host.exercise import Check, CheckFailedError, Exercise, Kind
from autograder.host.kinds.differences import contrasted, shortened
from autograder.host.kinds.misconceptions import named_mistake
from autograder.host.kinds.value import ValueAnswer

Part = tuple[str, list[str], int]
"""The last operation on an input's rows, the functions applied before it, and the input's index."""


class Kernel(TypedDict):
    """The text of a kernel, and what is known about each part of its description."""

    text: str
    parts: dict[str, Known]


FUNCTIONS = ("sin", "cos", "tanh", "exp", "relu")
ENDS = ("each", "row_sum", "column_max", "row_min", "row_product", "share", "pad", "choose")

kernel = kept(__name__, "kernel")


def kernel_text(code: str) -> str:
    """Return the body of the first kernel in generated code, without its head."""
    text = code[code.index("void  kernel(") :]
    return text[text.index("{\n") : text.index("''')")]


def random_text(draw: Draw, ends: tuple[str, ...], parts: int) -> Kernel:
    """Return one kernel for `parts` computations on two or three inputs, each with one of `ends` last."""
    shapes = [(draw.integer(3, 9), draw.integer(10, 30)) for _ in range(draw.integer(2, 3))]
    chosen = [
        (draw.choice(ends), draw.sample(FUNCTIONS, draw.integer(0, 2)), draw.integer(0, len(shapes) - 1))
        for _ in range(parts)
    ]
    drawn: Kernel = kernel(chosen, shapes)
    return drawn


PARTS = ("sizes", "reads", "writes", "functions", "reductions", "masked")


def reads_right(parts: Sequence[str], texts: Callable[[Draw], list[Kernel]]) -> Callable[[ValueAnswer, Draw], None]:
    """Return a check that the answer's entries `parts` are right for every block of every text."""

    def run(answer: ValueAnswer, draw: Draw) -> None:
        for text in texts(draw):
            found = answer.ask(text["text"])
            for part in parts:
                told = _entries(found, part)
                if told != text["parts"][part]["right"]:
                    raise CheckFailedError(_said(part, told, text["parts"][part]))

    return run


def _said(part: str, told: Any, about: Known) -> str:
    expected, why = about["right"], named_mistake(told, about["wrong"])
    if told is None:
        seen = f"nothing that can be read; expected {shortened(expected, 240)}"
    else:
        seen = contrasted(told, expected, most=200)
    return f"For a kernel of {len(expected)} blocks {part} is {seen}. {why}".strip()


def _entries(found: Any, part: str) -> list[Any] | None:
    if not isinstance(found, list) or not all(isinstance(loop, dict) and part in loop for loop in found):
        return None
    return [loop[part] for loop in found]


POINTWISE = ("each", "choose")
REDUCING = ("row_sum", "column_max", "row_min", "row_product")


def _some(draw: Draw) -> list[Kernel]:
    """Return kernels of several blocks, pointwise ones and reductions."""
    return [random_text(draw, (*POINTWISE, *REDUCING), n) for n in (2, 3, 4)]


def _reducing(draw: Draw) -> list[Kernel]:
    """Return kernels with reductions of every kind."""
    return [random_text(draw, REDUCING, 4), random_text(draw, ("share", *REDUCING), 4)]


def _reused(draw: Draw) -> list[Kernel]:
    """Return kernels in which a loop reads values that an earlier loop has written."""
    return [random_text(draw, ("share",), 2), random_text(draw, ("share", *POINTWISE), 4)]


def _masks(draw: Draw) -> list[Kernel]:
    """Return kernels with masked reads, and with selections that are not masks."""
    return [random_text(draw, ("pad",), 2), random_text(draw, ("choose",), 2), random_text(draw, ("pad", "choose"), 5)]


def long(draw: Draw) -> list[Kernel]:
    """Return long kernels of all kinds."""
    draw = draw.shared("everything")
    return [random_text(draw, ENDS, n) for n in (6, 7, 8)]


EXERCISE = Exercise(
    title="Read generated code",
    kind=Kind.VALUE,
    entry_point="read_code",
    points=8,
    hints=(
        "Indentation tells the blocks: one begins with a line of four spaces and {, and ends with four spaces and }.",
        "re.findall with re.MULTILINE gives each column: what stands left of [ at the start of a line is written.",
        "Reductions are the lines that begin with tmp_acc and no type. For masks, take the text from each [&] to the "
        "next line that is only a semicolon, and look for reads in it.",
    ),
    checks=(
        Check("the sizes of loops, and the functions", "loops", 1.6, reads_right(["sizes", "functions"], _some)),
        Check("what is written, and read", "pointers", 1.2, reads_right(["writes", "reads"], _reused)),
        Check("the reductions", "reductions", 1, reads_right(["reductions"], _reducing)),
        Check("what is read under a mask", "masks", 1, reads_right(["masked"], _masks)),
    ),
)
