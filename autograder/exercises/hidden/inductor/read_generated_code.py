"""Hidden checks and controls of exercise 09.3."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from math import prod
from typing import Any

import torch
from torch.nn import functional as F

from autograder.exercises.hidden.answer_files import Answers
from autograder.exercises.inductor.read_generated_code import (
    PAIRED,
    PARTS,
    Kernel,
    PartKnown,
    kernel_text,
    long,
    reads_right,
)
from autograder.host.exercise import Check, Control, HiddenPart
from course_lib.graph.generated_code import lowered

FUNCTIONS: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "sin": torch.sin,
    "cos": torch.cos,
    "tanh": torch.tanh,
    "exp": torch.exp,
    "relu": torch.relu,
}


ENDS: dict[str, Callable[..., torch.Tensor]] = {
    "each": lambda x: x * 2,
    "row_sum": lambda x: x.sum(1),
    "column_max": lambda x: x.amax(0),
    "row_min": lambda x: x.amin(1),
    "row_product": lambda x: x.prod(1),
    "share": lambda x: x / x.sum(1, keepdim=True),
    "pad": lambda x: F.pad(x, (2, 1)),
    "beside": lambda x, longer: F.pad(x, (2, 1)) + longer,
    "both": lambda x, y: F.pad(y, (1, 2)) - F.pad(x, (2, 1)),
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
            results.append(ENDS[end](x, inputs[at + 1]) if end in PAIRED else ENDS[end](x))
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


STARTS = r"float tmp_acc\d+ = (.*)"
RENAMED = {
    "The update says max_propagate_nan for max and min_propagate_nan for min.": {"max": "min", "min": "max"},
    "A product was taken for a sum; its line multiplies the accumulator.": {"product": "sum"},
    "It is called product here, not prod.": {"product": "prod"},
    "They are called max and min here, not amax and amin.": {"max": "amax", "min": "amin"},
}
"""Other names for reductions."""


def _renamed(names: Mapping[str, str], loop: Mapping[str, Any], block: str) -> list[str]:
    return [names.get(kind, kind) for kind in loop["reductions"]]


def _masked(block: str) -> list[str]:
    return re.findall(r"\[&\]\n(.*?)^ *;$", block, re.MULTILINE | re.DOTALL)


def _of_each(text: str, find: Callable[[str], Any]) -> list[Any]:
    return [find(block) for block in re.findall(r"^    \{\n(.*?)^    \}$", text, re.MULTILINE | re.DOTALL)]


def _pointers(block: str) -> list[str]:
    return sorted(set(re.findall(r"\w+_ptr\d+", block)))


def _each_block(entry: Callable[[Mapping[str, Any], str], Any]) -> Callable[[str], list[Any]]:
    """Return a function from a text to `entry` of each block's facts and text."""

    def gives(text: str) -> list[Any]:
        return [entry(loop, block) for loop, block in zip(loops_of(text), _of_each(text, str), strict=True)]

    return gives


@dataclass(frozen=True)
class PartMistake:
    """A likely mistake in one part of a description."""

    gives: Callable[[str], list[Any]]
    says: str
    counted: str  # category of the check that counts it


def _in_order(pattern: str, block: str) -> list[str]:
    return list(dict.fromkeys(re.findall(pattern, block, re.MULTILINE)))


READ, WRITTEN = r"= (\w+_ptr\d+)\[", r"^ *(\w+_ptr\d+)\["
EVERY = "Every pointer was listed; left of the sign = it is written, right of it read."
SORTED = "The functions were sorted; they are asked for in the order in which they are called"
ONCE = "A pointer was listed twice; each is asked for once, sorted."
UNSORTED = "The pointers stand in the order of the text; they are asked for sorted."
MISTAKES = {
    "sizes": (
        PartMistake(
            _each_block(lambda loop, _: loop["sizes"][:1]),
            "Only the first loop of each block was noted; loops inside it count too, in the order of the text.",
            "loops",
        ),
        PartMistake(
            _each_block(lambda loop, _: sorted(loop["sizes"])),
            "The sizes were sorted; they are asked for in the order of the text.",
            "loops",
        ),
        PartMistake(
            _each_block(lambda loop, _: [str(size) for size in loop["sizes"]]),
            "Sizes are texts here; int makes whole numbers of them.",
            "loops",
        ),
        PartMistake(
            _each_block(lambda loop, _: [prod(loop["sizes"])]),
            "The sizes were multiplied; each loop's own end is asked for.",
            "loops",
        ),
        PartMistake(
            _each_block(lambda loop, block: [int(n) for n in re.findall(r"for.*static_cast<int64_t>\((\d+)L", block)]),
            "The last number of each line with for is its step; the end of the loop stands behind <.",
            "loops",
        ),
    ),
    "reads": (
        PartMistake(_each_block(lambda _, block: _pointers(block)), EVERY, "pointers"),
        PartMistake(
            _each_block(lambda loop, _: [name for name in loop["reads"] if name.startswith("in_ptr")]),
            "Only inputs were listed; a loop also reads what an earlier one wrote, from an out_ptr or in_out_ptr.",
            "pointers",
        ),
        PartMistake(_each_block(lambda _, block: _in_order(READ, block)), UNSORTED, "pointers"),
        PartMistake(_each_block(lambda _, block: sorted(re.findall(READ, block))), ONCE, "pointers"),
        PartMistake(_each_block(lambda _, block: re.findall(READ, block)), f"{ONCE} Sort them.", "pointers"),
        PartMistake(
            _each_block(lambda loop, _: sorted({*loop["reads"]} - {*loop["masked"]})),
            "What is read under a mask is read, too: it belongs to reads and to masked.",
            "long kernels",
        ),
    ),
    "writes": (
        PartMistake(_each_block(lambda _, block: _pointers(block)), EVERY, "pointers"),
        PartMistake(
            _each_block(lambda loop, _: [name for name in loop["writes"] if name.startswith("out_ptr")]),
            "Only an out_ptr was listed; an in_out_ptr is written as well.",
            "pointers",
        ),
        PartMistake(_each_block(lambda _, block: _in_order(WRITTEN, block)), UNSORTED, "pointers"),
        PartMistake(_each_block(lambda _, block: re.findall(WRITTEN, block, re.MULTILINE)), ONCE, "pointers"),
    ),
    "functions": (
        PartMistake(_each_block(lambda loop, _: sorted(set(loop["functions"]))), f"{SORTED}, each time.", "loops"),
        PartMistake(_each_block(lambda loop, _: sorted(loop["functions"])), f"{SORTED}.", "loops"),
        PartMistake(
            _each_block(lambda loop, _: list(dict.fromkeys(loop["functions"]))),
            "Each function was listed once; it is asked for each time that it is called.",
            "loops",
        ),
        PartMistake(
            _each_block(lambda _, block: re.findall(r"std::(\w+)", block)),
            "std::numeric_limits is no call of a function: no ( stands behind the name.",
            "loops",
        ),
    ),
    "reductions": (
        PartMistake(
            _each_block(lambda _, block: ["max" if "inf" in line else "sum" for line in re.findall(STARTS, block)]),
            "The reduction was taken from the value that the accumulator starts with; 1 starts a product, and "
            "both max and min start with an infinity. Read the line that updates it.",
            "reductions",
        ),
        PartMistake(
            _each_block(lambda loop, _: list(dict.fromkeys(loop["reductions"]))),
            "Each kind of reduction was listed once; it is asked for each update of an accumulator.",
            "reductions",
        ),
        PartMistake(
            _each_block(lambda loop, _: sorted(loop["reductions"])),
            "The reductions were sorted; they are asked for in the order of the text.",
            "reductions",
        ),
        *(PartMistake(_each_block(partial(_renamed, names)), says, "reductions") for says, names in RENAMED.items()),
    ),
    "masked": (
        PartMistake(
            _each_block(lambda loop, block: loop["reads"] if "?" in block else []),
            "Whatever stands in a block with a question mark was listed; `c ? a : b` chooses between two values that "
            "are there. Masked is what is read inside [&] { ... }, which runs only where the mask holds.",
            "masks",
        ),
        PartMistake(
            _each_block(lambda loop, block: loop["reads"] if "[&]" in block else []),
            "All reads of a block with [&] were listed; only what stands between [&] and the line ; is masked.",
            "masks",
        ),
        PartMistake(
            _each_block(lambda loop, _: loop["masked"][:1]),
            "One masked read of each block was listed; a block may have several [&].",
            "masks",
        ),
        PartMistake(
            _each_block(lambda *_: []), "A masked read is missing: it stands between [&] and the line ;.", "masks"
        ),
        PartMistake(
            _each_block(lambda loop, _: bool(loop["masked"])),
            "Not whether something is masked is asked for, but the pointers that are read under a mask.",
            "masks",
        ),
    ),
}
"""Mistakes by parts; where one is counted, a check has kernels that show it."""

BLOCKS: Mapping[str, Callable[[list[Any]], list[Any]]] = {
    "Only the first block was described; a kernel has several.": lambda blocks: blocks[:1],
    "The last block is missing.": lambda blocks: blocks[:-1],
    "The first block is missing.": lambda blocks: blocks[1:],
    "The blocks stand in the reverse order of the text.": lambda blocks: blocks[::-1],
}
"""Mistakes in the list of blocks, which show in every part; the check of loops counts them."""


def kernel(parts: Sequence[tuple[str, Sequence[str], int]], shapes: Sequence[tuple[int, int]]) -> Kernel:
    """Return the text of a kernel, and for each part of its description the right value and known wrong ones."""
    text = _generated(tuple((end, tuple(names), at) for end, names, at in parts), tuple(shapes))
    return {"text": text, "parts": {part: _known(text, part) for part in PARTS}}


def _known(text: str, part: str) -> PartKnown:
    right = [loop[part] for loop in loops_of(text)]
    of_part = {mistake.says: [mistake.gives(text), mistake.counted] for mistake in MISTAKES[part]}
    of_blocks = {says: [change(right), "loops"] for says, change in BLOCKS.items()}
    return {
        "right": right,
        "wrong": {says: wrong for says, wrong in (of_part | of_blocks).items() if wrong[0] != right},
    }


ANSWERS = Answers(__name__)

HIDDEN = HiddenPart(
    checks=(
        Check(
            "long kernels: pointers and masks",
            "long kernels",
            2,
            reads_right(["reads", "masked"], long),
        ),
        Check(
            "long kernels: the rest",
            "long kernels",
            1.5,
            reads_right(["sizes", "functions", "reductions"], long),
        ),
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
        ANSWERS.file("a mistake in each part", 0),
        ANSWERS.edited("starts are updates", 8, ("'^ *tmp_acc", "' tmp_acc"), below=True),
    ),
)
