"""Check that right answers get full marks with every seed: each control that has all points, with many seeds.

    python -m benchmarks.full_marks [--exercises ID ...] [--seeds N] [--quick]

A control gets full marks if it answers rightly: the reference solution, and other ways to write it. Exit status 1 if
one of them lost points with a seed; the line says with which.
"""

import argparse
import sys
import time
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from autograder.exercises import all_exercises, find
from autograder.exercises.registry import hidden_part
from autograder.host.exercise import Control
from autograder.host.grading import graded_parts
from autograder.host.judge import judge
from autograder.host.records import ExerciseStatus
from autograder.host.sandbox import Sandbox, open_sandbox

SEEDS = 25
QUICK = ("00_read_a_table", "05_bias_silu_pass", "08_decompose")


@dataclass(frozen=True)
class Marked:
    """Hold the points of a right answer with one seed, and the messages where points were lost."""

    exercise: str
    control: str
    seed: int
    points: float
    of: float
    told: str


def right_answers(exercise_id: str) -> list[Control]:
    """Return the controls of an exercise that must get all its points."""
    part = hidden_part(exercise_id)
    if part is None:
        raise SystemExit("The hidden cases are not installed: without them nothing says which answers are right.")
    points = find(exercise_id).points
    return [control for control in part.controls if control.marks == points and not control.below]


def marked(exercise_id: str, control: Control, seed: int, sandbox: Sandbox) -> Marked:
    """Grade `control` as a student's answer."""
    exercise = find(exercise_id, hidden=True)
    parts = graded_parts(exercise, {exercise_id: control.answer})
    record = judge(exercise, parts, sandbox=sandbox, seed=seed)
    if record.status is ExerciseStatus.GRADER_ERROR:
        raise SystemExit(f"{control.name} of {exercise_id} was not graded with seed {seed}: {record.message}")
    lost = [f"{check.name}: {check.message}" for check in record.checks if check.points < check.max_points]
    return Marked(exercise_id, control.name, seed, record.points, exercise.points, "; ".join(lost) or record.message)


def all_marked(exercises: Iterable[str], seeds: int) -> Iterator[Marked]:
    """Yield the marks of every right answer with seeds 0 to `seeds` - 1, two at a time."""
    work = [(each, control, seed) for each in exercises for control in right_answers(each) for seed in range(seeds)]
    sandbox = open_sandbox()
    with ThreadPoolExecutor(max_workers=2) as pool:
        yield from pool.map(lambda one: marked(one[0], one[1], one[2], sandbox), work)


def main() -> int:
    """Print the right answers that lost points; see the module."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--exercises", nargs="+", metavar="ID", default=list(all_exercises()))
    parser.add_argument("--seeds", type=int, default=SEEDS, metavar="N", help=f"of each answer ({SEEDS})")
    parser.add_argument("--quick", action="store_true", help="three exercises with two seeds")
    options = parser.parse_args()
    exercises, seeds = (QUICK, 2) if options.quick else (options.exercises, options.seeds)
    started, count, answers, lost = time.monotonic(), 0, set(), 0
    for each in all_marked(exercises, seeds):
        count += 1
        answers.add((each.exercise, each.control))
        if each.points != each.of:
            lost += 1
            print(f"{each.exercise}, {each.control}, seed {each.seed}: {each.points:g} of {each.of:g}; {each.told}")
    taken = time.monotonic() - started
    print(f"{len(answers)} right answers to {len(exercises)} exercises, {seeds} seeds each: {count} times graded")
    print(f"in {taken:.0f} s; {count - lost} got full marks, {lost} did not")
    return 1 if lost else 0


if __name__ == "__main__":
    sys.exit(main())
