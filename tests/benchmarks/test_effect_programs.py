"""Generated programs with effects: none computes anything else once fused, and the sweep sees a blind analysis."""

import dataclasses
from typing import Any

import pytest
import torch

from benchmarks.effects_sweep import ROUNDINGS, _difference, table, try_effect
from benchmarks.fusion_trials.effect_programs import EFFECTS, SEEDS, generate_effect
from course_lib.graph import node_effects, recorder, stand_ins
from tests.drawn import some

PROGRAMS, TRIED = 400, 60  # others in each run; thousands in `make bench`
DRAWN = 1000


def test_no_generated_program_with_an_effect_computes_anything_else_once_fused() -> None:
    trials = [try_effect(number) for number in some(range(PROGRAMS), TRIED, name="programs with effects")]
    assert [(trial.number, trial.wrong) for trial in trials if trial.wrong] == []
    assert sum(trial.fused > 0 for trial in trials) > TRIED / 5
    assert sum(bool(trial.refused) for trial in trials) < TRIED / 4


def test_the_programs_are_of_every_kind_and_the_same_each_time() -> None:
    programs = [generate_effect(number) for number in range(DRAWN // 5)]
    assert {program.seed for program in programs} == set(SEEDS)
    assert len({program.effect for program in programs}) > len(EFFECTS) * 0.9
    assert programs[3].source == generate_effect(3).source


def _without(**fields: bool) -> Any:
    facts = recorder._facts
    return lambda operator: dataclasses.replace(facts(operator), **fields)


def _apart(tensor: Any, mode: Any, device: Any = None, memory: Any = None) -> Any:
    return _FAKE_LIKE(tensor, mode, device)


_FAKE_LIKE, _DRAWN = stand_ins.fake_like, recorder._written_and_drawn
# With one part of the analysis blind, the program of this number comes out wrong.
BLIND: dict[str, tuple[Any, str, Any, int]] = {
    "writes": (recorder, "_written_and_drawn", lambda facts, *call: (set(), _DRAWN(facts, *call)[1]), 1),
    "draws": (recorder, "_facts", _without(draws=False), 14),
    "code from elsewhere": (node_effects, "unseen_in_call", lambda *_: "", 8),
    "memory that inputs share": (stand_ins, "fake_like", _apart, 106),
}


@pytest.mark.parametrize("part", BLIND)
def test_the_sweep_notices_when_a_part_of_the_analysis_is_blind(part: str, monkeypatch: pytest.MonkeyPatch) -> None:
    owner, name, blind, number = BLIND[part]
    assert try_effect(number).wrong == ""
    monkeypatch.setattr(owner, name, blind)
    assert try_effect(number).wrong


@pytest.mark.parametrize("name", ["output 0", "input 0", "norm.running_mean", "gradient 0", "gradient of norm.weight"])
def test_a_small_element_beside_a_large_one_is_not_allowed_to_be_wrong(name: str) -> None:
    expected = {name: torch.tensor([1.0, 100.0])}
    assert _difference(expected, {name: torch.tensor([1.0 + 5e-3, 100.0])})  # 5e-5 of the largest
    assert not _difference(expected, {name: torch.tensor([1.0 + 1e-5, 100.0])})


def test_a_gradient_may_differ_by_roundings_of_the_largest_of_its_dtype_only() -> None:
    rounding = torch.finfo(torch.float32).eps * 100.0
    expected = {
        "gradient 0": torch.zeros(1),
        "gradient 1": torch.tensor([100.0]),
        "gradient 2": torch.zeros(1).double(),
    }
    near, far = torch.tensor([0.9 * ROUNDINGS * rounding]), torch.tensor([1.1 * ROUNDINGS * rounding])
    assert not _difference(expected, {**expected, "gradient 0": near})
    assert _difference(expected, {**expected, "gradient 0": far})
    assert _difference(expected, {**expected, "gradient 2": near.double()})  # no gradient of its dtype is large


def test_a_gradient_may_be_as_far_from_the_truth_as_the_programs_own_unless_other_numbers_were_drawn() -> None:
    def outcome(gradient: float) -> dict[str, torch.Tensor | None]:
        return {"gradient 0": torch.tensor([gradient]), "gradient 1": torch.tensor([10.0])}

    truth = {name: value.double() for name, value in outcome(1.0).items() if value is not None}
    assert _difference(outcome(1.0 + 2e-4), outcome(1.0 - 2e-4))
    assert not _difference(outcome(1.0 + 2e-4), outcome(1.0 - 2e-4), truth)
    assert _difference(outcome(1.0 + 2e-4), outcome(1.0 - 6e-4), truth)
    assert _difference(outcome(2.0), outcome(0.0), truth)
    assert _difference({"output 0": torch.ones(1)}, {"output 0": torch.ones(1) - 2e-4}, truth)


def test_cancelling_rows_of_a_norm_are_rounding() -> None:
    assert try_effect(500015).wrong == ""


def test_the_table_has_a_line_for_each_group() -> None:
    assert len(table([try_effect(1)], "seed", lambda trial: trial.program.seed).splitlines()) == 2
