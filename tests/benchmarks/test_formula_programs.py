"""Generated formulas: none computes anything else once fused, and those that must be found are."""

import itertools

import pytest
import torch

from benchmarks.fusion_trials.formula_programs import EDITS, FORMULAS, generate_formula
from benchmarks.fusion_trials.program_trials import try_formula
from course_lib.fusion.expressions import formula_pattern, operator_formulas
from course_lib.fusion.passes import out_of_place
from tests.drawn import some

PROGRAMS, TRIED, PARTS = 150, 45, 3  # others in each run; thousands in `make bench`, by benchmarks/fusion_sweep.py
DRAWN = 300  # enough for one of every kind, which costs little where nothing is fused


@pytest.mark.parametrize("part", range(PARTS))
def test_no_generated_formula_computes_anything_else_once_fused(part: int) -> None:
    outcomes = [try_formula(number) for number in some(range(PROGRAMS), TRIED, name="formulas")[part::PARTS]]
    assert [outcome.wrong for outcome in outcomes if outcome.wrong] == []
    missed = [outcome for outcome in outcomes if outcome.program.must_fuse and not outcome.fused]
    assert [(outcome.number, outcome.program.source, outcome.explanation) for outcome in missed] == []


def test_the_programs_are_the_same_each_time_and_of_every_kind() -> None:
    programs = [generate_formula(number) for number in range(DRAWN)]
    again = some(range(DRAWN), DRAWN // 5, name="formulas made twice")
    assert [programs[number].source for number in again] == [generate_formula(number).source for number in again]
    assert {program.edit for program in programs} == {"", *EDITS}
    assert {program.formula for program in programs} == set(FORMULAS)
    assert len({program.source for program in programs}) > DRAWN * 0.9


def _no_tolerance(dtype: torch.dtype) -> float:
    return 0.1


def _any_correction(match: object) -> None:
    return None


def _nobody_sees(call: object, memories: object) -> None:
    return None


# Without the check, the programs come out wrong.
CHECKS = {
    "literals": (formula_pattern, "tolerance", _no_tolerance, "a literal is off"),
    "biased": (operator_formulas, "_variance_objection", _any_correction, "unbiased=True"),
    "memory": (out_of_place, "_objection_to_memory", _nobody_sees, "x.add_(1)"),
}


@pytest.mark.parametrize("check", CHECKS)
def test_the_programs_notice_when_a_check_is_missing(check: str, monkeypatch: pytest.MonkeyPatch) -> None:
    module, name, instead, written = CHECKS[check]
    programs = ((number, generate_formula(number)) for number in range(0, 18 * PROGRAMS, 3))
    edited = (number for number, program in programs if written in f"{program.edit}: {program.source}")
    numbers = list(itertools.islice(edited, 12))
    monkeypatch.setattr(module, name, instead)
    assert any(try_formula(number).wrong for number in numbers)
