"""Attacks on the machine succeed unprotected, gain nothing in a worker, and leave those beside them alone."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from autograder.exercises import find
from autograder.exercises.quality.controls import controls
from autograder.host.judge import judge
from tests.autograder.host.hostile.catalogue import Attack, attacks
from tests.autograder.host.hostile.levels import OWN_LEVELS, opened
from tests.autograder.host.hostile.machine import gained, target, unprotected
from tests.drawn import some, third

MACHINE = attacks("machine")
LOUD = ("fork_bomb", "memory_in_many_processes", "endless_output")


@pytest.mark.parametrize("attack", third(MACHINE, name="attacks on the machine"), ids=lambda attack: attack.path.stem)
def test_an_attack_on_the_machine_succeeds_unprotected(attack: Attack, tmp_path: Path) -> None:
    with target(tmp_path) as question:
        assert unprotected(attack, question, tmp_path) != ""


@pytest.mark.parametrize("level", some(OWN_LEVELS, min(1, len(OWN_LEVELS)), name="levels of attacks on the machine"))
def test_no_attack_on_the_machine_gains_anything_where_its_level_is_promised(level: int, tmp_path: Path) -> None:
    promised = [attack for attack in MACHINE if level <= attack.level]
    sandbox = opened(level)

    with target(tmp_path) as question:
        found = gained(promised, sandbox, question)

    assert {name: what for name, what in found.items() if what} == {}
    assert (tmp_path / "gradebook.db").read_text() == "everyone: 3"
    assert sorted(p.name for p in tmp_path.iterdir()) == ["gradebook.db"]


def test_an_honest_answer_gets_its_marks_while_others_attack_the_machine(tmp_path: Path) -> None:
    exercise = find("04_read_a_graph", hidden=True)
    reference = next(c for c in controls(exercise.id) if c.name == "reference")
    loud = [attack for attack in MACHINE if attack.path.stem in LOUD]
    sandbox = opened("auto")

    with target(tmp_path) as question, ThreadPoolExecutor(2) as pool:
        attacking = pool.submit(gained, loud, sandbox, question)
        honest = pool.submit(judge, exercise, {"answer": reference.answer}, sandbox=sandbox, seed=7).result()

    assert honest.points == exercise.points
    assert set(attacking.result().values()) == {""}
