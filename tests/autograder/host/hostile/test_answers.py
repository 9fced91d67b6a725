"""Every hostile answer succeeds against a naive grader, and earns nothing here at any level that promises it."""

import json
import multiprocessing
import os
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from autograder.exercises import all_exercises, find
from autograder.host.exercise import Exercise, Kind
from autograder.host.grading import graded_parts
from autograder.host.judge import judge
from tests.autograder.host.hostile import naive_grader
from tests.autograder.host.hostile.catalogue import Attack, attacks, text_of
from tests.autograder.host.hostile.levels import opened, weakest
from tests.drawn import some

ANSWERS = attacks(*all_exercises())
PROVEN_HERE = [*ANSWERS, *attacks("notebook")]
STRONGEST, WEAKEST = "at the strongest level of this machine", "at the weakest that promises it"
# One of them a run, for each has its own processes to start; both in the attack suite's benchmark.
LEVELS = some((STRONGEST, WEAKEST), 1, name="levels of hostile answers")
TRIED, PROVEN = 32, 28  # attacks a run: on the graders of the course, and on naive ones; all of them in the benchmark
TRIALS = [
    (attack, "auto" if level == STRONGEST else weakest(attack.level))
    for attack in some(ANSWERS, TRIED, name="hostile answers")
    for level in LEVELS
]
# The checks of a pass ask alike about many programs: attacks are tried on the first, as by naive graders, and on some.
CHECKS = {Kind.GRAPH: 4}
WALL_S = 8.0
HONEST_WALL_S = 60.0  # its honest part has to come to its end, on a loaded machine too
ENDLESS_WALL_S = 3.0  # one that never ends only has to be ended
HANGING_S = 1.0  # after so long a naive grader hangs
LOADED_S = 60.0  # but not where it is only slow, on a loaded machine
PATIENCE_S = 90.0  # starts of workers on a loaded machine included

Verdict = Callable[[Attack, Path], dict[str, str]]


@pytest.fixture(scope="module")
def naive() -> Iterator[Verdict]:
    """What becomes of a naive grader, in a fork of this process, which forks for each proof."""
    (theirs_in, requests), (replies, theirs_out) = os.pipe(), os.pipe()
    server = multiprocessing.get_context("fork").Process(target=naive_grader.serve, args=(theirs_in, theirs_out))
    server.start()
    os.close(theirs_in)
    os.close(theirs_out)

    def verdict(attack: Attack, forged: Path) -> dict[str, str]:
        patience_s = HANGING_S if attack.outcome == "hangs" else LOADED_S
        print(attack.grader, attack.exercise, attack.path, forged, patience_s, file=ask, flush=True)
        found: dict[str, str] = json.loads(answers.readline())
        return found

    with os.fdopen(replies) as answers:
        with os.fdopen(requests, "w") as ask:
            yield verdict
        server.join(10)


@pytest.mark.parametrize("attack", some(PROVEN_HERE, PROVEN, name="proofs"), ids=lambda attack: attack.name)
def test_an_attack_succeeds_against_a_naive_grader(attack: Attack, naive: Verdict, tmp_path: Path) -> None:
    found = naive(attack, tmp_path / "forged")

    ran = (tmp_path / "forged").exists()
    outcome = {"gives full marks": "full marks", "runs its code": found["outcome"]}.get(attack.outcome, attack.outcome)
    assert (found["outcome"], ran) == (outcome, attack.outcome == "runs its code"), found["printed"]


def part_of(exercise: Exercise, name: str) -> Exercise:
    """The exercise with as many of its checks as an attack of this name is tried on in one run."""
    first, *others = exercise.checks
    count = min(CHECKS.get(exercise.kind, len(exercise.checks)), len(exercise.checks))
    checks = (first, *some(others, count - 1, name=name))
    return replace(exercise, checks=checks, points=round(sum(check.points for check in checks), 6))


@pytest.mark.parametrize(("attack", "level"), TRIALS, ids=[f"{a.name} at {level}" for a, level in TRIALS])
def test_an_attack_earns_no_more_than_its_honest_part(attack: Attack, level: int | str) -> None:
    wall_s = ENDLESS_WALL_S if attack.outcome == "hangs" else HONEST_WALL_S if attack.most else WALL_S
    exercise = replace(find(attack.exercise, hidden=True), wall_s=wall_s)
    if not attack.most:  # one that does a part of the task is stopped by a single check, perhaps the last one
        exercise = part_of(exercise, attack.name)
    sandbox = opened(level)
    started = time.monotonic()

    parts = graded_parts(exercise, {exercise.id: text_of(attack.path)})
    record = judge(exercise, parts, sandbox=sandbox, seed=7)

    assert record.points <= attack.most, [(c.name, c.points, c.message) for c in record.checks]
    assert record.status != "grader_error", record.message
    # one that replaces a function of ours and lacks its parameters attacks nothing
    assert not any("unexpected keyword argument" in c.message for c in record.checks)
    assert record.max_points == exercise.points
    assert time.monotonic() - started < PATIENCE_S
    assert not Path("/tmp/forged").exists()
