"""What becomes of a generated program: fused, compared with itself, and written down."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from course_lib.fusion import FusionResult, fuse, verify
from tests.course_lib.fusion.generated_programs import Program, generate


@dataclass(frozen=True)
class Outcome:
    """What became of one program."""

    number: int
    program: Program
    refused: bool = False  # by PyTorch, before any pass
    fused: bool = False  # by the pass that its seed is for
    wrong: str = ""  # how it differs after fusing
    explanation: str = ""  # why it was not fused


def try_out(number: int) -> Outcome:
    """Generate program `number`, fuse it and compare."""
    program = generate(number)
    try:
        with torch.no_grad():
            program.module(*(value.clone() for value in program.inputs))
    except (RuntimeError, TypeError):  # an edit may mix types that PyTorch does not mix
        return Outcome(number, program, refused=True)
    result = fuse(program.module, program.inputs)
    fused = result.num_matches_by_pass[program.seed.name] > 0
    return Outcome(number, program, False, fused, _difference(program, result), result.explain())


def _difference(program: Program, result: FusionResult) -> str:
    modes, dtypes = (program.mode,), (torch.float64,)
    report = verify(program.module, result.graph_module, program.inputs, modes=modes, dtypes=dtypes)
    return "" if report.passed else f"{report}\n{result.graph_module.code}"
