"""Find the masked loads without `other=` on whose undefined lanes the outputs of a kernel depend."""

from collections.abc import Sequence

import torch

from autograder.host.kinds.callable import Case
from autograder.host.kinds.triton import KernelRun, TritonAnswer


def undefined_loads(answer: TritonAnswer, run: KernelRun, case: Case, function: str) -> tuple[list[int], KernelRun]:
    """Return the lines of the loads whose undefined lanes change an output, and a run in which all of them hold 0."""
    if not run.undefined:
        return [], run
    defined = answer.run(case, function, zero_at=run.undefined)
    found = []
    for line in run.undefined:
        others = tuple(other for other in run.undefined if other != line)
        alone = answer.run(case, function, zero_at=others) if others else run
        if not _same(alone, defined):
            found.append(line)
    return found, defined


def said_of_undefined(lines: Sequence[int], case: Case) -> str:
    """Return the sentence about these loads."""
    which = f"Line {lines[0]}" if len(lines) == 1 else "Lines " + ", ".join(map(str, sorted(lines)))
    return (
        f"{which} of the answer: `tl.load` with a mask and without `other=`: the lanes outside of the mask hold no "
        f"defined value on a GPU, and the result depends on them{case.where}; give `other=`."
    )


def _same(first: KernelRun, second: KernelRun) -> bool:
    return len(first.outputs) == len(second.outputs) and all(map(_identical, first.outputs, second.outputs))


def _identical(first: torch.Tensor, second: torch.Tensor) -> bool:
    """Tell whether two outputs are equal, NaN for NaN; an answer chooses their dtype in each run."""
    same_form = first.shape == second.shape and first.dtype == second.dtype
    return same_form and torch.allclose(first, second, rtol=0, atol=0, equal_nan=True)
