"""Exercise 09.3: read generated code, and describe its loops, its reductions and its masked reads.

The code is C++ of random programs, in its simplest form. The host lowers its own programs and compiles none.
"""

from collections.abc import Callable, Sequence
from typing import Any, TypedDict

from autograder.exercises.questions import kept
from autograder.host.checks.known_mistakes import explanations
from autograder.host.draw import Draw
from autograder.host.exercise import Check, CheckFailedError, Exercise, Kind
from autograder.host.kinds.differences import contrasted, same, shortened
from autograder.host.kinds.value import ValueAnswer


class PartKnown(TypedDict):
    """One part of a description, an entry for each block, and what each known mistake gives in place of it."""

    right: list[Any]
    wrong: dict[str, list[Any]]  # from a sentence to the entries, and the category of the check that counts it


class Kernel(TypedDict):
    """The text of a kernel, and what is known about each part of its description."""

    text: str
    parts: dict[str, PartKnown]


FUNCTIONS = ("sin", "cos", "tanh", "exp", "relu")
ENDS = ("each", "row_sum", "column_max", "row_min", "row_product", "share", "pad", "choose")
PAIRED = ("beside", "both")
"""Last operations on an input and the next one: a padded one beside one that is as long, and two padded ones."""

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


def reads_right(
    parts: Sequence[str], texts: Callable[[Draw], list[Kernel]], category: str = "long kernels"
) -> Callable[[ValueAnswer, Draw], None]:
    """Return a check that the answer's entries `parts` are right for every block of every text.

    A known mistake that the check of another category counts costs nothing here, if it explains all that is wrong.
    """

    def run(answer: ValueAnswer, draw: Draw) -> None:
        asked = texts(draw)
        found = [answer.ask(text["text"]) for text in asked]
        forgiven: set[str] = set()
        for part in parts:
            about = [text["parts"][part] for text in asked]
            made = _require(part, [_entries(each, part) for each in found], about, category)
            if made and forgiven and not forgiven & made:
                raise CheckFailedError(
                    "Several parts are wrong, each by a mistake of its own that an earlier check tells: mend those."
                )
            forgiven = forgiven & made or forgiven | made

    return run


def _require(part: str, told: list[Any], about: list[PartKnown], category: str) -> set[str]:
    """Return the known mistakes that explain a wrong part; raise `CheckFailedError` if this check counts it."""
    right = [each["right"] for each in about]
    at = next((i for i, expected in enumerate(right) if not same(told[i], expected)), None)
    made = explanations(told, right, [each["wrong"] for each in about])
    if at is None:
        return set()
    if made and category not in made.values():
        return set(made)
    why = next((says for says, counted in made.items() if counted == category), "")
    seen = contrasted(told[at], right[at], most=200)
    raise CheckFailedError(f"For a kernel of {len(right[at])} blocks {part} is {seen}. {why}".strip())


def _entries(found: Any, part: str) -> list[Any]:
    if not isinstance(found, list) or not all(isinstance(loop, dict) for loop in found):
        raise CheckFailedError(
            f"read_code returned {shortened(found, 60)}; expected a list with a dict for each block."
        )
    if not all(part in loop for loop in found):
        raise CheckFailedError(f"A block has no entry {part!r}; a dict has the keys {', '.join(PARTS)}.")
    return [loop[part] for loop in found]


POINTWISE = ("each", "choose")
REDUCING = ("row_sum", "column_max", "row_min", "row_product")


def _of(draw: Draw, *parts: tuple[str, int], rows: int = 12) -> Kernel:
    """Return a kernel of the computations `parts`, each an operation and how many functions come before it.

    All are on the first input; paired ones read the second, too, which is longer for "beside".
    """
    width = draw.integer(14, 30)
    chosen = [(end, draw.sample(FUNCTIONS, count), 0) for end, count in parts]
    shapes = [(rows, width), (rows, width + 3 * any(end == "beside" for end, _ in parts))]
    drawn: Kernel = kernel(chosen, shapes)
    return drawn


def _some(draw: Draw) -> list[Kernel]:
    """Return kernels of several blocks, pointwise ones and reductions; columns, and functions that are called twice."""
    telling = _of(draw, ("row_sum", 4), ("row_min", 4), ("each", 2), ("column_max", 1))
    return [telling, *(random_text(draw, (*POINTWISE, *REDUCING), n) for n in (2, 3, 4))]


def _reducing(draw: Draw) -> list[Kernel]:
    """Return kernels with reductions of every kind, several of which are in one block."""
    telling = _of(draw, ("row_sum", 1), ("row_min", 1), ("row_sum", 2), ("row_product", 1), ("column_max", 0))
    return [telling, random_text(draw, REDUCING, 4), random_text(draw, ("share", *REDUCING), 4)]


def _reused(draw: Draw) -> list[Kernel]:
    """Return kernels in which a loop reads values that an earlier loop has written.

    The first block of the first one does so too. Otherwise an answer that is the same for any text may describe the
    first block of each, which costs nothing here.
    """
    telling = _of(draw, ("each", 1), ("both", 1), ("share", 0))
    kept: Kernel = kernel(
        [("share", ["exp"], 0)], [(12, draw.integer(14, 30))]
    )  # exp is written, then divided in place
    return [telling, kept, random_text(draw, ("share",), 2), random_text(draw, ("share", *POINTWISE), 4)]


def _masks(draw: Draw) -> list[Kernel]:
    """Return kernels with masked reads, one or two in a block or beside others, and with selections without masks."""
    telling = [_of(draw, ("each", 1), ("both", 1)), _of(draw, ("beside", 1))]
    drawn = [random_text(draw, ends, n) for ends, n in ((("pad",), 2), (("choose",), 2), (("pad", "choose"), 5))]
    return [*telling, *drawn]


def long(draw: Draw) -> list[Kernel]:
    """Return long kernels of all kinds; as in `_reused`, the first block of the first one reads what it has written."""
    draw = draw.shared("everything")
    return [_of(draw, ("pad", 1), ("share", 0)), *(random_text(draw, ENDS, n) for n in (6, 7, 8))]


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
        Check("sizes of loops, and functions", "loops", 1.5, reads_right(["sizes", "functions"], _some, "loops")),
        Check("what is written, and read", "pointers", 1, reads_right(["writes", "reads"], _reused, "pointers")),
        Check("the reductions", "reductions", 1, reads_right(["reductions"], _reducing, "reductions")),
        Check("what is read under a mask", "masks", 1, reads_right(["masked"], _masks, "masks")),
    ),
)
