"""Bring your own backend: a target says which operators it takes and compiles parts of a graph; the kit does the rest.

Read the files in the order of what happens to a graph:

    support.py        which operators a target takes, and a reason for each that it does not
    aten.py           from whatever was captured to a graph of few operators (all that is private of PyTorch is here)
    condensing.py     merge nodes into groups without ever making a cycle
    partitioning.py   cut a graph into parts for a target and the rest
    splitting.py      write the graph anew, with a call for each part
    target.py         what a target has to offer
    cache.py          what was compiled before
    prices.py         whether a part is worth it
    compiling.py      one part, for each kind of inputs that it meets
    lowering.py       `lower`: all of it for one graph
    dynamo.py         `Backend`: all of it for `torch.compile`, in training too
    reports.py        what became of a program

`toy` is a complete target to learn from: a compiler for the machine of `course_lib.machine`.
"""

from course_lib.backends.cache import CompileCache, InputFacts, facts_of, fingerprint
from course_lib.backends.compiling import Compiled, PartOutcome
from course_lib.backends.dynamo import Backend
from course_lib.backends.lowering import Lowered, Refusal, lower
from course_lib.backends.partitioning import partition
from course_lib.backends.prices import Prices, Spent
from course_lib.backends.reports import Report, report
from course_lib.backends.splitting import Part, cut_out, split
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
