"""Measure how long a student waits for `check`, with the reference solution of each exercise.

    python -m benchmarks.grading.practice_checks [--exercises ID ...] [--quick]

All checks are made in one process, as in one notebook, so only the very first one opens the sandbox and starts the
process from which workers are forked. Exit status 1 if a check took longer than the target after the first, or if a
solution missed a point.
"""

import argparse
import linecache
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from typing import Any

from autograder.exercises import all_exercises, find
from autograder.exercises.quality.controls import controls
from autograder.host.exercise import REFERENCE, Kind
from autograder.practice import check

TARGET_S = 2.0
REPEATS = 3
TRITON = "import triton\nimport triton.language as tl\n"  # which a cell of its own imports in the notebook
QUICK = ("01_scaled_dot_product", "04_read_a_graph", "05_bias_silu_pass", "12_masked_blend")


def answer_of(exercise_id: str) -> Callable[..., Any]:
    """Return the function of our reference solution, defined as a cell of a notebook defines it."""
    exercise = find(exercise_id)
    text = next(control.answer for control in controls(exercise_id) if control.name == REFERENCE)
    name = f"<cell {exercise_id}>"
    linecache.cache[name] = (len(text), None, text.splitlines(keepends=True), name)
    names: dict[str, Any] = {}
    exec(exercise.setup, names)
    if exercise.kind is Kind.TRITON:
        exec(TRITON, names)
    exec(compile(text, name, "exec"), names)
    vars(sys.modules["__main__"])[exercise.entry_point] = names[exercise.entry_point]  # some answers need it there
    found: Callable[..., Any] = names[exercise.entry_point]
    return found


def times_of(exercise_id: str) -> tuple[list[float], bool]:
    """Return the seconds of each check, and whether all of them gave all points."""
    answer, taken, right = answer_of(exercise_id), [], True
    for _ in range(1 + REPEATS):
        started = time.monotonic()
        score = check(exercise_id, answer)
        taken.append(time.monotonic() - started)
        right = right and score == score.record.max_points
    return taken, right


def main() -> int:
    """Print the table; see the module."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--exercises", nargs="+", metavar="ID", default=list(all_exercises()))
    parser.add_argument("--quick", action="store_true", help="four exercises of different kinds")
    options = parser.parse_args()
    slow, wrong = [], []
    print(f"{'exercise':40}{'first s':>9}{'then s':>9}")
    with tempfile.TemporaryDirectory() as state:
        os.environ["XDG_STATE_HOME"] = state  # these checks must not appear in a student's diary of practice
        for exercise_id in QUICK if options.quick else options.exercises:
            (first, *later), right = times_of(exercise_id)
            print(f"{exercise_id:40}{first:>9.2f}{statistics.median(later):>9.2f}", flush=True)
            slow += [exercise_id] * (statistics.median(later) > TARGET_S)
            wrong += [exercise_id] * (not right)
    print(f"slower than {TARGET_S:g} s after the first: {', '.join(slow) or 'none'}")
    if wrong:
        print(f"without full points: {', '.join(wrong)}")
    return 1 if slow or wrong else 0


if __name__ == "__main__":
    sys.exit(main())
