"""Try one generated program or formula: fuse it, compare it with itself, and record the outcome."""

import copy
from dataclasses import dataclass

import torch
from torch import nn

from benchmarks.fusion_trials.formula_programs import FormulaProgram, generate_formula
from benchmarks.fusion_trials.generated_programs import Program, generate
from course_lib.fusion import PASSES, FusionResult, GraphPass, fuse
from course_lib.fusion.passes.layer_norm_to_batch_norm import LayerNormToBatchNorm
from course_lib.verify import verify


@dataclass(frozen=True)
class Outcome:
    """Hold the outcome of one program."""

    number: int
    program: Program | FormulaProgram
    refused: bool = False  # by PyTorch, before any pass
    fused: bool = False  # by the pass of its seed; for a formula, whether its operator was found
    wrong: str = ""  # how it differs after fusing
    explanation: str = ""  # why it was not fused


def try_out(number: int) -> Outcome:
    """Generate program `number`, fuse it and compare."""
    program = generate(number)
    if not _runs(program):
        return Outcome(number, program, refused=True)
    passes = _passes(program)
    result = fuse(program.module, program.inputs, passes, level="lossy")
    fused = result.num_matches_by_pass[program.seed.name] > 0
    return Outcome(number, program, False, fused, _difference(program, result), result.explain())


def _runs(program: Program | FormulaProgram) -> bool:
    """Tell whether PyTorch runs a program; an edit may give types or shapes that do not fit."""
    try:
        with torch.no_grad():
            copy.deepcopy(program.module)(*(value.clone() for value in program.inputs))
    except (RuntimeError, TypeError, ValueError):
        return False
    return True


def _passes(program: Program) -> list[GraphPass]:
    """Return the default passes and the pass that the seed is for, in the order of the library.

    A lossy pass comes first, because the reference replaces LayerNorm in the unfused program, where no calls but equal
    ones are one. `fuse` runs all passes again after a fusion, so the lossy one sees equal calls as one, too.
    """
    calibration = [program.inputs] if program.mode == "eval" else []
    chosen = [cls for cls in PASSES.values() if cls.by_default or cls.name == program.seed.name]
    chosen.sort(key=lambda cls: cls.level == "exact")
    return [LayerNormToBatchNorm(calibration=calibration) if cls is LayerNormToBatchNorm else cls() for cls in chosen]


def _difference(program: Program, result: FusionResult) -> str:
    casts = ".float()" in program.source  # then float64 tells no more than the rounding of float32
    modes, dtypes = (program.mode,), (torch.float32 if casts else torch.float64,)
    lossy = result.num_matches_by_pass.get(LayerNormToBatchNorm.name, 0) > 0
    reference = _with_batch_norm(program) if lossy else program.module
    report = verify(reference, result.graph_module, program.inputs, modes=modes, dtypes=dtypes)
    return "" if report.passed else f"{report}\n{result.graph_module.code}"


class _Rows(nn.BatchNorm1d):
    """Apply BatchNorm over the last dimension, with the statistics of its first input."""

    def forward(self, input: torch.Tensor) -> torch.Tensor:  # noqa: A002  # PyTorch's name
        rows = input.flatten(0, -2)
        if not self.training and not self.num_batches_tracked:
            assert self.running_mean is not None
            assert self.running_var is not None
            self.running_mean.copy_(rows.mean(0).detach())
            self.running_var.copy_(rows.var(0, correction=0).detach())
            self.num_batches_tracked.fill_(1)  # type: ignore[union-attr]  # it keeps statistics
        return super().forward(rows).reshape(input.shape)


def _with_batch_norm(program: Program) -> nn.Module:
    """Return the program with BatchNorm in place of its LayerNorm; equal calls are one, and count a batch once."""
    twin = fuse(copy.deepcopy(program.module), program.inputs, ("common_subexpressions",)).graph_module
    norm = twin.norm
    assert isinstance(norm, nn.LayerNorm)
    rows = _Rows(norm.normalized_shape[0], norm.eps).double().train(norm.training)
    rows.weight, rows.bias = norm.weight, norm.bias
    twin.norm = rows
    if program.mode == "eval":
        with torch.no_grad():
            twin(*(value.clone() for value in program.inputs))
    return twin


def try_formula(number: int) -> Outcome:
    """Generate program `number`, fuse it and compare."""
    program = generate_formula(number)
    if not _runs(program):
        return Outcome(number, program, refused=True)
    result = fuse(program.module, program.inputs)
    counts = result.num_matches_by_pass
    # Writes in place must have become functional too.
    fused = counts["formulas"] > 0 and (counts["out_of_place"] > 0 or not program.in_place)
    report = verify(program.module, result.graph_module, program.inputs, modes=("eval",), dtypes=(torch.float64,))
    wrong = "" if report.passed else f"{program.source}\n{report}\n{result.graph_module.code}"
    return Outcome(number, program, False, fused, wrong, result.explain())
