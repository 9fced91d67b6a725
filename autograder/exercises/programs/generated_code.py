"""Generated C++ of programs drawn at random, in its plainest form, and what there is to read in it.

The host lowers its own programs; nothing is compiled.
"""

import re
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any

import torch
from torch.nn import functional as F

from autograder.host.draw import Draw
from course_lib.graph.generated_code import lowered

Part = tuple[str, tuple[str, ...], int]
"""What is done with an input's rows, functions before that, and which input."""

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
    """Return the text of one kernel for `parts` computations, each ending as one of `ends`, on two or three inputs."""
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
    """Return what there is to read in a kernel, a dict for each block."""
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
