"""Generated programs: none computes anything else once fused, and those that must fuse do."""

import random
from types import ModuleType

import pytest
import torch

from benchmarks.fusion_sweep import table, table_of_passes
from benchmarks.fusion_trials.generated_programs import generate
from benchmarks.fusion_trials.program_seeds import EDITS, SEEDS, spell
from benchmarks.fusion_trials.program_trials import Outcome, try_out
from course_lib.fusion import guards
from course_lib.fusion.passes import batch_norm_folding, qkv_merge
from tests.drawn import some

PROGRAMS, TRIED, PARTS = 100, 30, 3  # others in each run; thousands in `make bench`, by benchmarks/fusion_sweep.py
EQUAL_CALLS = 51_047  # found by a sweep: a program in training mode with two equal calls of a LayerNorm
DRAWN = 200  # enough for one of every kind, which costs little where nothing is fused


@pytest.mark.parametrize("part", range(PARTS))
def test_no_generated_program_computes_anything_else_once_fused(part: int) -> None:
    outcomes = [try_out(number) for number in some(range(PROGRAMS), TRIED, name="programs")[part::PARTS]]
    assert [outcome.wrong for outcome in outcomes if outcome.wrong] == []
    missed = [outcome for outcome in outcomes if outcome.program.must_fuse and not outcome.fused]
    assert [(outcome.number, outcome.explanation) for outcome in missed] == []


def test_equal_calls_of_a_norm_that_became_one_batch_norm_count_a_batch_once() -> None:
    assert try_out(EQUAL_CALLS).wrong == ""


def test_the_programs_are_the_same_each_time_and_of_every_kind() -> None:
    programs = [generate(number) for number in range(DRAWN)]
    again = some(range(DRAWN), DRAWN // 5, name="programs made twice")
    assert [programs[number].source for number in again] == [generate(number).source for number in again]
    assert {program.seed for program in programs} == set(SEEDS)
    assert len({program.edit for program in programs}) > len(EDITS) / 2
    assert len({program.source for program in programs}) > DRAWN * 0.9
    assert all(torch.equal(*pair) for pair in zip(programs[3].inputs, generate(3).inputs, strict=True))


@pytest.mark.parametrize("edit", EDITS)
def test_every_edit_changes_some_seed(edit: str) -> None:
    draw = random.Random(0)
    lines = [[spell(step, draw) for step in seed.steps] for seed in SEEDS]
    assert any(EDITS[edit](one, seed.steps, draw) != one for one, seed in zip(lines, SEEDS, strict=True))


# Without the rule, the program of this number comes out wrong.
RULES = {
    "arguments_are_those_of_the_pattern": 221,
    "nothing_is_written_in_place": 2,
    "operands_do_not_change": 5,
}


@pytest.mark.parametrize("rule", RULES)
def test_the_sweep_notices_when_a_rule_is_missing(rule: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert try_out(RULES[rule]).wrong == ""
    monkeypatch.setattr(guards, "COMMON_RULES", tuple(one for one in guards.COMMON_RULES if one.__name__ != rule))
    assert try_out(RULES[rule]).wrong


# The same for what single passes ask.
RULES_OF_PASSES: dict[tuple[ModuleType, str], int] = {
    (qkv_merge, "_objection_to_changes"): 16,
    (batch_norm_folding, "_objection_to_mode"): 40,
}


@pytest.mark.parametrize(("module", "rule"), RULES_OF_PASSES, ids=lambda value: getattr(value, "__name__", value))
def test_the_sweep_notices_when_a_pass_forgets_a_rule(
    module: ModuleType, rule: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert try_out(RULES_OF_PASSES[module, rule]).wrong == ""
    monkeypatch.setattr(module, rule, lambda *_: None)
    assert try_out(RULES_OF_PASSES[module, rule]).wrong


def test_the_table_counts_what_happened() -> None:
    unfused = Outcome(0, generate(0), fused=False)
    fused = Outcome(0, generate(0), fused=True, wrong="differs")
    for counted in (table, table_of_passes):
        assert counted([unfused, fused]).splitlines()[1].split()[-3:] == ["2", "1", "1"]
