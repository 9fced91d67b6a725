"""Try one generated formula: fuse it, compare it with itself, and record the outcome."""

import copy
from dataclasses import dataclass

import torch

from benchmarks.fusion_trials.formula_programs import FormulaProgram, generate_formula
from course_lib.fusion import fuse
from course_lib.verify import verify


@dataclass(frozen=True)
class FormulaOutcome:
    """Hold the outcome of one program."""

    number: int
    program: FormulaProgram
    refused: bool = False  # by PyTorch, before any pass
    fused: bool = False  # its operator was found, and writes in place became functional
    wrong: str = ""  # how it differs after fusing
    explanation: str = ""  # why it was not fused


def try_formula(number: int) -> FormulaOutcome:
    """Generate program `number`, fuse it and compare."""
    program = generate_formula(number)
    try:
        with torch.no_grad():
            copy.deepcopy(program.module)(*(value.clone() for value in program.inputs))
    except (RuntimeError, TypeError):  # an edit may give shapes that do not fit
        return FormulaOutcome(number, program, refused=True)
    result = fuse(program.module, program.inputs)
    counts = result.num_matches_by_pass
    fused = counts["formulas"] > 0 and (counts["out_of_place"] > 0 or not program.in_place)
    report = verify(program.module, result.graph_module, program.inputs, modes=("eval",), dtypes=(torch.float64,))
    wrong = "" if report.passed else f"{program.source}\n{report}\n{result.graph_module.code}"
    return FormulaOutcome(number, program, False, fused, wrong, result.explain())
