"""Exercise 09.3: read generated code, and describe its loops, its reductions and its masked reads.

The code is C++ of random programs, in its simplest form. The host lowers its own programs and compiles none.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Any

import torch
from torch.nn import functional as F

from autograder.host.draw import Draw
from autograder.host.exercise import Check, CheckFailedError, Exercise, Kind
from autograder.host.kinds.misconceptions import Misconception, explained_value
from autograder.host.kinds.value import ValueAnswer
from course_lib.graph.generated_code import lowered

Part = tuple[str, tuple[str, ...], int]
"""The last operation on an input's rows, the functions applied before it, and the input's index."""

FUNCTIONS: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "sin": torch.sin,
    "cos": torch.cos,
    "tanh": torch.tanh,
    "exp": torch.exp,
    "relu": torch.relu,
}
ENDS: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "each": lambda x: x * 2,
    "row_sum": lambda x: x.sum(1),
    "column_max": lambda x: x.amax(0),
    "row_min": lambda x: x.amin(1),
    "row_product": lambda x: x.prod(1),
    "share": lambda x: x / x.sum(1, keepdim=True),
    "pad": lambda x: F.pad(x, (2, 1)),
    "choose": lambda x: torch.where(x > 0, x, -x),
}
REDUCTIONS = {"+": "sum", "*": "product", "max_propagate_nan": "max", "min_propagate_nan": "min"}


def random_text(draw: Draw, ends: tuple[str, ...], parts: int) -> str:
    """Return the text of one kernel for `parts` computations on two or three inputs, each with one of `ends` last."""
    shapes = tuple((draw.integer(3, 9), draw.integer(10, 30)) for _ in range(draw.integer(2, 3)))
    chosen = tuple(
        (draw.choice(ends), tuple(draw.sample(list(FUNCTIONS), draw.integer(0, 2))), draw.integer(0, len(shapes) - 1))
        for _ in range(parts)
    )
    return _generated(chosen, shapes)


@lru_cache(maxsize=512)
def _generated(parts: tuple[Part, ...], shapes: tuple[tuple[int, int], ...]) -> str:
    def program(*inputs: torch.Tensor) -> list[torch.Tensor]:
        results = []
        for end, names, at in parts:
            x = inputs[at]
            for name in names:
                x = FUNCTIONS[name](x)
            results.append(ENDS[end](x))
        return results

    (code,) = lowered(program, [torch.ones(shape) for shape in shapes], config={"cpp.simdlen": 0}).code
    return kernel_text(code)


def kernel_text(code: str) -> str:
    """Return the body of the first kernel in generated code, without its head."""
    text = code[code.index("void  kernel(") :]
    return text[text.index("{\n") : text.index("''')")]


def loops_of(text: str) -> list[Mapping[str, Any]]:
    """Return the facts about a kernel, one dict for each block."""
    blocks = re.findall(r"^    \{\n(.*?)^    \}$", text, re.MULTILINE | re.DOTALL)
    return [
        {
            "sizes": [int(n) for n in re.findall(r"for\(.*?<static_cast<int64_t>\((\d+)L\)", block)],
            "reads": sorted(set(re.findall(r"= (\w+_ptr\d+)\[", block))),
            "writes": sorted(set(re.findall(r"^ *(\w+_ptr\d+)\[", block, re.MULTILINE))),
            "functions": re.findall(r"std::(\w+)\(", block),
            "reductions": [_reduction(line) for line in block.splitlines() if re.match(r" *tmp_acc\d+ = ", line)],
            "masked": sorted({name for part in _masked(block) for name in re.findall(r"= (\w+_ptr\d+)\[", part)}),
        }
        for block in blocks
    ]


def _reduction(line: str) -> str:
    return next(name for sign, name in REDUCTIONS.items() if f" {sign} " in line or f"{sign}(" in line)


def _masked(block: str) -> list[str]:
    return re.findall(r"\[&\]\n(.*?)^ *;$", block, re.MULTILINE | re.DOTALL)


PARTS = ("sizes", "reads", "writes", "functions", "reductions", "masked")


def _of_each(text: str, find: Callable[[str], Any]) -> list[Any]:
    return [find(block) for block in re.findall(r"^    \{\n(.*?)^    \}$", text, re.MULTILINE | re.DOTALL)]


def _pointers(block: str) -> list[str]:
    return sorted(set(re.findall(r"\w+_ptr\d+", block)))


MISCONCEPTIONS = {
    "sizes": (
        Misconception(
            lambda text: [loop["sizes"][:1] for loop in loops_of(text)],
            "Only the first loop of each block was noted; loops inside it count too, in the order of the text.",
        ),
    ),
    "reads": (
        Misconception(
            lambda text: _of_each(text, _pointers),
            "Every pointer was listed; left of the sign = it is written, right of it read.",
        ),
        Misconception(
            lambda text: [[name for name in loop["reads"] if name.startswith("in_ptr")] for loop in loops_of(text)],
            "Only inputs were listed; a loop also reads what an earlier one wrote, from an out_ptr or in_out_ptr.",
        ),
    ),
    "writes": (
        Misconception(
            lambda text: _of_each(text, _pointers),
            "Every pointer was listed; left of the sign = it is written, right of it read.",
        ),
    ),
    "functions": (
        Misconception(
            lambda text: [sorted(set(loop["functions"])) for loop in loops_of(text)],
            "The functions were sorted; they are asked for in the order in which they are called, each time.",
        ),
    ),
    "reductions": (
        Misconception(
            lambda text: [
                ["max" if "infinity" in line else "sum" for line in block]
                for block in _of_each(text, lambda b: re.findall(r"float tmp_acc\d+ = .*", b))
            ],
            "The reduction was taken from the value that the accumulator starts with; 1 starts a product, and "
            "both max and min start with an infinity. Read the line that updates it.",
        ),
    ),
    "masked": (
        Misconception(
            lambda text: [loop["reads"] if "?" in block else [] for loop, block in _paired(text)],
            "Whatever stands in a block with a question mark was listed; `c ? a : b` chooses between two values that "
            "are there. Masked is what is read inside [&] { ... }, which runs only where the mask holds.",
        ),
    ),
}


def _paired(text: str) -> list[tuple[Mapping[str, Any], str]]:
    return list(zip(loops_of(text), _of_each(text, str), strict=True))


def reads_right(parts: Sequence[str], texts: Callable[[Draw], list[str]]) -> Callable[[ValueAnswer, Draw], None]:
    """Return a check that the answer's entries `parts` are right for every block of every text."""

    def run(answer: ValueAnswer, draw: Draw) -> None:
        for text in texts(draw):
            found, truth = answer.ask(text), loops_of(text)
            for part in parts:
                told = _entries(found, part)
                expected = [loop[part] for loop in truth]
                if told != expected:
                    raise CheckFailedError(_said(part, told, expected, text))

    return run


def _said(part: str, told: Any, expected: list[Any], text: str) -> str:
    why = explained_value(told, text, MISCONCEPTIONS[part])
    seen = "nothing that can be read" if told is None else str(told)[:160]
    return f"For a kernel of {len(expected)} blocks {part} is {seen}; expected {str(expected)[:240]}. {why}".strip()


def _entries(found: Any, part: str) -> list[Any] | None:
    if not isinstance(found, list) or not all(isinstance(loop, dict) and part in loop for loop in found):
        return None
    return [loop[part] for loop in found]


POINTWISE = ("each", "choose")
REDUCING = ("row_sum", "column_max", "row_min", "row_product")


def _some(draw: Draw) -> list[str]:
    """Return kernels of several blocks, pointwise ones and reductions."""
    return [random_text(draw, (*POINTWISE, *REDUCING), n) for n in (2, 3, 4)]


def _reducing(draw: Draw) -> list[str]:
    """Return kernels with reductions of every kind."""
    return [random_text(draw, REDUCING, 4), random_text(draw, ("share", *REDUCING), 4)]


def _reused(draw: Draw) -> list[str]:
    """Return kernels in which a loop reads values that an earlier loop has written."""
    return [random_text(draw, ("share",), 2), random_text(draw, ("share", *POINTWISE), 4)]


def _masks(draw: Draw) -> list[str]:
    """Return kernels with masked reads, and with selections that are not masks."""
    return [random_text(draw, ("pad",), 2), random_text(draw, ("choose",), 2), random_text(draw, ("pad", "choose"), 5)]


def long(draw: Draw) -> list[str]:
    """Return long kernels of all kinds."""
    draw = draw.shared("everything")
    return [random_text(draw, tuple(ENDS), n) for n in (6, 7, 8)]


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
