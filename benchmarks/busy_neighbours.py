"""Right answers that are graded beside an answer that takes all processors: their marks, and their time.

    python -m benchmarks.busy_neighbours [--quick]

The neighbour starts as many processes as it may, each in a session of its own, and all of them compute without end.
Exit status 1 if a right answer loses a point beside it.
"""

import argparse
import sys
import threading
import time
from dataclasses import replace

from autograder.exercises import find
from autograder.exercises.registry import hidden_part
from autograder.host.exercise import REFERENCE
from autograder.host.grading import grade_exercise
from autograder.host.records import ExerciseRecord
from autograder.host.sandbox import Sandbox, open_sandbox
from course_lib.show import Table

HOG = """\
import os

def train(*_, **__):
    try:
        while True:
            if os.fork() == 0:
                os.setsid()
                while True:
                    pass
    except OSError:  # as many as allowed
        while True:
            pass
"""
EXERCISES = ("07_tame_recompiles", "08_partition", "05_fix_the_self_cycle")
HEAD_START_S, HOG_S = 10.0, 90.0
SEED = 1


def graded(exercise_id: str, sandbox: Sandbox) -> tuple[ExerciseRecord, float]:
    """Return the record of the reference solution and the seconds that its grading took."""
    part = hidden_part(exercise_id)
    if part is None:
        raise SystemExit("The hidden cases are not installed: without them there are no solutions to grade.")
    reference = next(control.answer for control in part.controls if control.name == REFERENCE)
    started_s = time.monotonic()
    record = grade_exercise(find(exercise_id, hidden=True), {exercise_id: reference}, sandbox=sandbox, seed=SEED)
    return record, time.monotonic() - started_s


def main() -> int:
    """Print the marks and times of the right answers, alone and beside the busy one."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="one right answer, and a neighbour that ends sooner")
    quick = parser.parse_args().quick
    exercises, head_start_s, hog_s = (EXERCISES[-1:], 2.0, 10.0) if quick else (EXERCISES, HEAD_START_S, HOG_S)
    sandbox = open_sandbox()
    alone = [graded(each, sandbox) for each in exercises]
    hog = replace(find("01_train", hidden=True), wall_s=hog_s)
    neighbour = threading.Thread(
        target=grade_exercise, args=(hog, {hog.id: HOG}), kwargs={"sandbox": sandbox, "seed": 1}
    )
    neighbour.start()
    time.sleep(head_start_s)
    beside = [graded(each, sandbox) for each in exercises]
    if not neighbour.is_alive():
        print("The neighbour ended before the right answers did; measure again on a machine with less load.")
    neighbour.join()
    rows = [
        (
            each,
            f"{one.points:g} / {one.max_points:g}",
            f"{one_s:.1f}",
            f"{two.points:g} / {two.max_points:g}",
            f"{two_s:.1f}",
        )
        for each, (one, one_s), (two, two_s) in zip(exercises, alone, beside, strict=True)
    ]
    print(Table(("reference solution", "alone", "s", "beside", "s"), tuple(rows)))
    print(f"level {sandbox.level}: {'; '.join(sandbox.notes)}")
    return int(any(two.points != one.points for (one, _), (two, _) in zip(alone, beside, strict=True)))


if __name__ == "__main__":
    sys.exit(main())
