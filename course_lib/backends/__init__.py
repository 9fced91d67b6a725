"""Write a backend for `torch.compile`: a target takes operators and compiles parts; this package does the rest.

Read the files in the order in which they process a graph:

    support.py          which operators a target takes, and a reason for each that it does not
    aten.py             decompose a captured graph into few operators (the only use of private parts of PyTorch)
    condensation.py     merge nodes into groups without ever making a cycle
    parts.py            cut a graph into parts for a target and the rest, and write it with a call for each part
    target.py           the interface of a target
    compiled_part.py    one part, for each kind of inputs that it meets: what was compiled before, whether it pays
    lowered_graph.py    `lower`: all steps for one graph
    backend.py          `Backend`: all steps for `torch.compile`, in training too
    lowering_report.py  a report on lowered graphs

`toy` is a complete target to learn from: a compiler for the machine of `course_lib.machine`.
"""

from course_lib.backends.backend import Backend
from course_lib.backends.compiled_part import (
    CompileCache,
    Compiled,
    InputFacts,
    PartOutcome,
    Prices,
    Spent,
    facts_of,
    fingerprint,
)
from course_lib.backends.lowered_graph import Lowered, Refusal, lower
from course_lib.backends.lowering_report import Report, report
from course_lib.backends.parts import Part, cut_out, partition, split
from course_lib.backends.support import (
    Condition,
    Support,
    argument,
    argument_is,
    dtypes,
    gives_a_tensor,
    keeps_dtype,
    one_dtype,
    rank_at_most,
    target_name,
    tensor_of,
)
from course_lib.backends.target import Executable, Target

__all__ = [
    "Backend",
    "CompileCache",
    "Compiled",
    "Condition",
    "Executable",
    "InputFacts",
    "Lowered",
    "Part",
    "PartOutcome",
    "Prices",
    "Refusal",
    "Report",
    "Spent",
    "Support",
    "Target",
    "argument",
    "argument_is",
    "cut_out",
    "dtypes",
    "facts_of",
    "fingerprint",
    "gives_a_tensor",
    "keeps_dtype",
    "lower",
    "one_dtype",
    "partition",
    "rank_at_most",
    "report",
    "split",
    "target_name",
    "tensor_of",
]
