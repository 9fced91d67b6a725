"""Exercise 02.3: count the bytes that a program moves, and its floating-point operations, operator by operator.

Questions are programs as data, with random shapes. For each program, the expected cost is a formula of the shapes. The
answer must count while a program runs.
"""

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from autograder.host.draw import Draw
from autograder.host.exercise import Check, CheckFailedError, Exercise, Kind
from autograder.host.kinds.value import ValueAnswer

ITEM = {"float64": 8, "float32": 4, "bfloat16": 2, "float16": 2}
Steps = tuple[tuple[Any, ...], ...]


@dataclass(frozen=True)
class Question:
    """A program, its cost, and the wrong totals of known mistakes."""

    name: str
    inputs: tuple[tuple[int, ...], ...]
    steps: Steps
    bytes: int
    flops: int = 0
    dtype: str = "float32"
    wrong: tuple[tuple[int, str], ...] = ()  # wrong totals of bytes, and the mistake behind each

    @property
    def data(self) -> Mapping[str, Any]:
        """Return the question in the form that `course_lib.models.program_from_steps` accepts."""
        inputs = [{"shape": list(shape), "dtype": self.dtype} for shape in self.inputs]
        return {"inputs": inputs, "steps": [list(step) for step in self.steps]}


def sizes(draw: Draw, count: int) -> list[int]:
    """Return different sizes from 3 to 40, so that different formulas do not agree by chance."""
    return draw.sample(range(3, 41), count)


WRITTEN = "Only what is written was counted; what is read moves, too."
LISTS = "Tensors also come in lists, as cat takes them."
HALF = "A multiplication and an addition are two operations."
ELEMENTS = "That is the number of elements; multiply by the bytes of one."
FOUR = "Every element was taken for 4 bytes; ask the tensor for its element_size()."
VIEWS_COST = "A view moves nothing: its result lies in the storage of its input."
IN_PLACE = "An operator that writes in place is no view: it reads its tensors and writes one of them."
STORED = "What was expanded is stored once along the dimensions of stride 0, and is read once there."
ONCE = "A tensor that an operator gets twice is read once."


def views(draw: Draw) -> Iterator[Question]:
    """Yield a chain of views, and one operator that moves bytes."""
    m, n = sizes(draw, 2)
    paid = 2 * 4 * m * n
    steps: Steps = (("t", "%0"), ("unsqueeze", "%1", 0), ("squeeze", "%2", 0), ("relu", "%3"))
    yield Question("three views and relu", ((m, n),), steps, paid, wrong=((4 * paid, VIEWS_COST),))
    steps = (("view", "%0", [n * m]), ("neg", "%1"))
    yield Question("view and neg", ((m, n),), steps, paid, wrong=((2 * paid, VIEWS_COST),))
    k = draw.integer(1, m - 1)
    part = 2 * 4 * k * n
    steps = (("slice", "%0", 0, 0, k), ("exp", "%1"))
    whole = "Only the slice is read, not the tensor that it was cut from."
    wrong = ((4 * (m * n + k * n), whole), (4 * (m * n + k * n) + part, VIEWS_COST), (2 * part, VIEWS_COST))
    yield Question("slice and exp", ((m, n),), steps, part, wrong=wrong)
    for view, shown, elements in draw.sample(_other_views(m, n), 3):
        moved = 2 * 4 * elements
        costs = ((moved + 4 * (m * n + elements), VIEWS_COST), (2 * moved, VIEWS_COST))
        yield Question(f"{view[0]} and neg", ((m, n),), (view, ("neg", shown)), moved, wrong=costs)


def _other_views(m: int, n: int) -> list[tuple[tuple[Any, ...], str, int]]:
    """Return views of a matrix that programs use seldom, each with its value in the program and its elements."""
    return [
        (("select", "%0", 0, m // 2), "%1", n),
        (("diagonal", "%0"), "%1", min(m, n)),
        (("detach", "%0"), "%1", m * n),
        (("as_strided", "%0", [n, m], [1, n]), "%1", m * n),
        (("unbind", "%0", 1), "%1.0", m),
        (("alias", "%0"), "%1", m * n),
    ]


def products(draw: Draw) -> Iterator[Question]:
    """Yield matrix products: alone, in a batch, with a bias, and one that PyTorch decomposes."""
    m, k, n, b = sizes(draw, 4)
    flops = 2 * m * k * n
    yield Question("mm", ((m, k), (k, n)), (("mm", "%0", "%1"),), 4 * (m * k + k * n + m * n), flops)
    moved = 4 * b * (m * k + k * n + m * n)
    yield Question("bmm", ((b, m, k), (b, k, n)), (("bmm", "%0", "%1"),), moved, b * flops)
    moved = 4 * (n + m * k + k * n + m * n)
    yield Question("addmm", ((n,), (m, k), (k, n)), (("addmm", "%0", "%1", "%2"),), moved, flops)
    moved = 4 * (b * m * k + k * n + b * m * n)
    yield Question("matmul of a batch and a matrix", ((b, m, k), (k, n)), (("matmul", "%0", "%1"),), moved, b * flops)


def five_operators(draw: Draw) -> Iterator[Question]:
    """Yield five programs of one operator each."""
    m, n = sizes(draw, 2)
    one = 4 * m * n
    wrong = ((one, WRITTEN), (2 * one, "Both inputs are read."))
    yield Question("add", ((m, n), (m, n)), (("add", "%0", "%1"),), 3 * one, wrong=wrong)
    yield Question("mul of a tensor with itself", ((m, n),), (("mul", "%0", "%0"),), 2 * one, wrong=((3 * one, ONCE),))
    yield Question("gelu", ((m, n),), (("gelu", "%0"),), 2 * one)
    yield Question("sum of rows", ((m, n),), (("sum", "%0", [1]),), one + 4 * m)
    lists = ((2 * one, LISTS),)
    yield Question("cat of a list", ((m, n), (m, n)), (("cat", ["%0", "%1"], 0),), 4 * one, wrong=lists)


def chains(draw: Draw) -> Iterator[Question]:
    """Yield whole programs: a linear layer with an activation and a mask."""
    for _ in range(2):
        m, k, n = sizes(draw, 3)
        steps = (("mm", "%0", "%1"), ("add", "%4", "%2"), ("gelu", "%5"), ("mul", "%6", "%3"), ("t", "%7"))
        moved = (m * k + k * n + m * n) + (2 * m * n + n) + 2 * m * n + 3 * m * n
        inputs = ((m, k), (k, n), (n,), (m, n))
        wrong = ((4 * moved + 2 * 4 * m * n, VIEWS_COST), (4 * 4 * m * n, WRITTEN))
        yield Question("a masked linear layer", inputs, steps, 4 * moved, 2 * m * k * n, wrong=wrong)


ELSEWHERE = frozenset({VIEWS_COST, ONCE, WRITTEN, LISTS, HALF, ELEMENTS, FOUR, IN_PLACE, STORED})
"""Mistakes that one check counts each; where another one meets their totals, they cost nothing."""


def counts(
    questions: Callable[[Draw], Iterator[Question]], *keys: str, counted: Collection[str] = ()
) -> Callable[[ValueAnswer, Draw], None]:
    """Return a check that the answer's counts called `keys` are exact for all questions.

    `counted` are the mistakes that cost this check's points.
    """

    def run(answer: ValueAnswer, draw: Draw) -> None:
        for question in questions(draw):
            for key in keys:
                _require(answer.ask(question.data, key), key, question, counted)

    return run


def _require(found: Any, key: str, question: Question, counted: Collection[str]) -> None:
    if not isinstance(found, dict) or type(found.get(key)) is not int:
        raise CheckFailedError(f"count returned {found!r:.80}; expected a dict with whole numbers, bytes and flops.")
    expected = question.bytes if key == "bytes" else question.flops
    if found[key] != expected:
        thought = _thought(found[key], key, question)
        if thought in ELSEWHERE and thought not in counted:
            return
        shapes = " and ".join(str(list(shape)) for shape in question.inputs)
        raise CheckFailedError(
            f"{question.name}, {question.dtype}, inputs {shapes}: {key} are {found[key]}; expected {expected}. "
            f"{thought}".rstrip()
        )


def _thought(found: int, key: str, question: Question) -> str:
    """Return the likely mistake, if the number shows it."""
    if key == "flops":
        return HALF if found * 2 == question.flops else "Multiply the sizes m, k, n, the batch, and 2."
    for total, sentence in question.wrong:
        if found == total:
            return sentence
    item = ITEM[question.dtype]
    if found * item == question.bytes:
        return ELEMENTS
    return FOUR if found * item == question.bytes * 4 else ""


EXERCISE = Exercise(
    title="Count bytes and FLOPs",
    kind=Kind.VALUE,
    entry_point="count",
    points=14,
    # they would do the counting
    masked=tuple(f"course_lib.{p}" for p in ("graph", "profiling", "fusion", "schedule", "backends", "machine")),
    wall_s=30,
    hints=(
        "Print, in a mode of your own, each operator with the shapes of what it reads and writes. Which of them write "
        "into a storage that one of their inputs already had?",
        "Call the operator first. Then gather the tensors among its arguments, each once, and those in its result, and "
        "decide whether it was a view before you add anything.",
        "The storage is the same where `untyped_storage().data_ptr()` is. An operator that writes in place says so in "
        "its schema: `_schema.is_mutable`. A dimension of stride 0 is stored once.",
    ),
    checks=(
        Check("views cost nothing", "views", 2, counts(views, "bytes", counted=(VIEWS_COST,))),
        Check(
            "floating-point operations of matrix products", "products", 2, counts(products, "flops", counted=(HALF,))
        ),
        Check(
            "bytes of five operators",
            "bytes",
            2,
            counts(five_operators, "bytes", counted=(ONCE, WRITTEN, LISTS, ELEMENTS)),
        ),
        Check("bytes and FLOPs of whole programs", "programs", 2, counts(chains, "bytes", "flops")),
    ),
)
