"""Hidden checks and controls of exercise 09.3."""

from __future__ import annotations

from autograder.exercises.inductor import read_generated_code as visible
from autograder.host.exercise import Check, Control, HiddenPart

reads_right, long = visible.reads_right, visible.long

REFERENCE = r"""
KINDS = {"max_propagate_nan": "max", "min_propagate_nan": "min", "+": "sum", "*": "product"}
READ = r"= (\w+_ptr\d+)\["


def read_code(text):
    loops = []
    for block in re.findall(r"^    {\n(.*?)^    }$", text, re.M | re.S):
        updates = re.findall(r"^ *tmp_acc\d+ = (.*);$", block, re.M)
        masked = "".join(re.findall(r"\[&\]\n(.*?)^ *;$", block, re.M | re.S))
        loops.append({
            "sizes": [int(size) for size in re.findall(r"for.*<static_cast<int64_t>\((\d+)L", block)],
            "reads": sorted(set(re.findall(READ, block))),
            "writes": sorted(set(re.findall(r"^ *(\w+_ptr\d+)\[", block, re.M))),
            "functions": re.findall(r"std::(\w+)\(", block),
            "reductions": [next(KINDS[kind] for kind in KINDS if kind in update) for update in updates],
            "masked": sorted(set(re.findall(READ, masked))),
        })
    return loops
"""

HIDDEN = HiddenPart(
    checks=(
        Check("long kernels: pointers and masks", "long kernels", 1.8, reads_right(["reads", "masked"], long)),
        Check("long kernels: the rest", "long kernels", 1.4, reads_right(["sizes", "functions", "reductions"], long)),
    ),
    controls=(
        Control("reference", REFERENCE, 8),
        Control("no block", "def read_code(text):\n    return []\n", 0),
        Control(
            "one block",
            "def read_code(text):\n    return [{'sizes': [], 'reads': ['in_ptr0'], 'writes': ['out_ptr0'], "
            "'functions': [], 'reductions': ['sum'], 'masked': []}]\n",
            0,
        ),
        Control("starts are updates", REFERENCE.replace(r"^ *tmp_acc", r" tmp_acc"), 8, below=True),
    ),
)
