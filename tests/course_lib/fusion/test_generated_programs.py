"""Two hundred generated programs: none computes anything else once fused, and those that must fuse do."""

import pytest
import torch

from benchmarks.fusion_sweep import table
from course_lib.fusion import guards
from tests.course_lib.fusion.generated_programs import EDITS, generate
from tests.course_lib.fusion.program_trials import Outcome, try_out

PROGRAMS, PARTS = 200, 10


@pytest.mark.parametrize("part", range(PARTS))
def test_no_generated_program_computes_anything_else_once_fused(part: int) -> None:
    outcomes = [try_out(number) for number in range(part, PROGRAMS, PARTS)]
    assert [outcome.wrong for outcome in outcomes if outcome.wrong] == []
    missed = [outcome for outcome in outcomes if outcome.program.must_fuse and not outcome.fused]
    assert [(outcome.number, outcome.explanation) for outcome in missed] == []


def test_the_programs_are_the_same_each_time_and_of_every_kind() -> None:
    programs = [generate(number) for number in range(PROGRAMS)]
    assert [program.source for program in programs] == [generate(number).source for number in range(PROGRAMS)]
    assert {program.edit for program in programs} == {"", *EDITS}
    assert len({program.source for program in programs}) > PROGRAMS * 0.9
    assert all(torch.equal(*pair) for pair in zip(programs[3].inputs, generate(3).inputs, strict=True))


# Without the rule, the program of this number comes out wrong.
RULES = {
    "arguments_are_those_of_the_pattern": 16,
    "nothing_is_written_in_place": 106,
    "operands_do_not_change": 10,
}


@pytest.mark.parametrize("rule", RULES)
def test_the_sweep_notices_when_a_rule_is_missing(rule: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert try_out(RULES[rule]).wrong == ""
    monkeypatch.setattr(guards, "COMMON_RULES", tuple(one for one in guards.COMMON_RULES if one.__name__ != rule))
    assert try_out(RULES[rule]).wrong


def test_the_table_counts_what_happened() -> None:
    unfused = Outcome(0, generate(0), fused=False)
    fused = Outcome(0, generate(0), fused=True, wrong="differs")
    assert table([unfused, fused]).splitlines()[1].split()[-3:] == ["2", "1", "1"]
