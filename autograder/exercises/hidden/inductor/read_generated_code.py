"""Hidden checks and controls of exercise 09.3."""

import re
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Any

import torch
from torch.nn import functional as F

from autograder.exercises.hidden.answer_files import Answers
from autograder.exercises.inductor.read_generated_code import PARTS, Kernel, kernel_text, long, reads_right
from autograder.exercises.questions import Known
from autograder.host.exercise import Check, Control, HiddenPart
from autograder.host.kinds.misconceptions import Misconception, wrong_values
from course_lib.graph.generated_code import lowered

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


@lru_cache(maxsize=512)
def _generated(parts: tuple[tuple[str, tuple[str, ...], int], ...], shapes: tuple[tuple[int, int], ...]) -> str:
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


def kernel(parts: Sequence[tuple[str, Sequence[str], int]], shapes: Sequence[tuple[int, int]]) -> Kernel:
    """Return the text of a kernel, and for each part of its description the right value and known wrong ones."""
    text = _generated(tuple((end, tuple(names), at) for end, names, at in parts), tuple(shapes))
    return {"text": text, "parts": {part: _known(text, part) for part in PARTS}}


def _known(text: str, part: str) -> Known:
    return {"right": [loop[part] for loop in loops_of(text)], "wrong": wrong_values(text, MISCONCEPTIONS[part])}


ANSWERS = Answers(__name__)

HIDDEN = HiddenPart(
    checks=(
        Check("long kernels: pointers and masks", "long kernels", 1.8, reads_right(["reads", "masked"], long)),
        Check("long kernels: the rest", "long kernels", 1.4, reads_right(["sizes", "functions", "reductions"], long)),
    ),
    controls=(
        ANSWERS.reference(8),
        Control("no block", "def read_code(text):\n    return []\n", 0),
        Control(
            "one block",
            "def read_code(text):\n    return [{'sizes': [], 'reads': ['in_ptr0'], 'writes': ['out_ptr0'], "
            "'functions': [], 'reductions': ['sum'], 'masked': []}]\n",
            0,
        ),
        ANSWERS.edited("starts are updates", 8, ("'^ *tmp_acc", "' tmp_acc"), below=True),
    ),
)
