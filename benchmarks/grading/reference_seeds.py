"""Grade the reference solution of each exercise with many seeds: every check must pass with each of them.

    python -m benchmarks.grading.reference_seeds [--exercises ID ...] [--seeds N] [--first SEED] [--quick]

All checks run as when a student is graded, on the same drawn inputs and with workers in the sandbox. Only the workers
are not new for each seed: one worker loads the answer anew for each of some seeds. An exercise whose seeds would take
more than `--most-s` seconds of processor time gets as many as fit in `--part-s`. The time is that of the host and of
the workers together. Exit status 1 if a reference lost a check with a seed; the line says with which.
"""

import argparse
import os
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from autograder.exercises import all_exercises, find
from autograder.exercises.quality.controls import controls
from autograder.host.channel import MalformedAnswerError
from autograder.host.compute_lock import compute_lock
from autograder.host.draw import Draw
from autograder.host.exercise import REFERENCE, CheckFailedError, Exercise
from autograder.host.grading import graded_parts
from autograder.host.kinds.table import KINDS
from autograder.host.sandbox import Sandbox, open_sandbox
from autograder.host.session import AnswerFailedError, Session
from autograder.host.setup_imports import absent_names
from autograder.protocol import ProtocolError
from autograder.protocol.requests.loads import LoadAnswer, Part

SEEDS, MOST_S, PART_S = 1_000, 180.0, 120.0
SEEDS_A_WORKER = 50
MEASURED = 10  # seeds after which the time of all seeds is estimated
WALL_S = 86_400.0
QUICK = ("00_read_a_table", "01_multi_head_attention", "05_bias_silu_pass")


@dataclass
class Tried:
    """Hold how many seeds were tried on an exercise, what failed with which, and the processor time of all."""

    exercise: str
    wanted: int
    seeds: int = 0
    failures: dict[int, list[str]] = field(default_factory=dict)
    cpu_s: float = 0.0

    def __str__(self) -> str:
        a_seed = self.cpu_s / max(self.seeds, 1)
        return f"{self.exercise:<32}{self.seeds:>8}{len(self.failures):>10}{self.cpu_s:>10.1f}{a_seed:>14.3f}"


class ReferenceGrading:
    """The checks of one exercise on its reference solution, with workers that serve several seeds."""

    def __init__(self, exercise: Exercise, text: str, sandbox: Sandbox) -> None:
        self._exercise, self._sandbox = exercise, sandbox
        cells = tuple(Part(name, cell) for name, cell in graded_parts(exercise, {exercise.id: text}).items())
        self._load = LoadAnswer(exercise.kind.value, exercise.entry_point, cells)

    def lost(self, seeds: range) -> Iterator[tuple[int, list[str], float]]:
        """Yield for each seed the checks that failed with their messages, and the workers' processor time since."""
        masked, absent = self._exercise.masked, absent_names(self._exercise.setup, self._exercise.masked)
        student = Session(self._sandbox, self._load, masked=masked, absent=absent, wall_s=WALL_S)
        clean = Session(self._sandbox, None, wall_s=WALL_S)
        used_s = 0.0
        try:
            for seed in seeds:
                student.reload(self._load, ())
                failed = list(self._failed(student, clean, seed))
                before_s, used_s = used_s, sum(_cpu_s(session.worker_pid) for session in (student, clean))
                yield seed, failed, max(used_s - before_s, 0.0)
        finally:
            student.close()
            clean.close()

    def _failed(self, student: Session, clean: Session, seed: int) -> Iterator[str]:
        answer = KINDS[self._exercise.kind](student, clean)
        for check in self._exercise.checks:
            try:
                check.run(answer, Draw(seed, self._exercise.id, check.name))
            except (CheckFailedError, AnswerFailedError, MalformedAnswerError, ProtocolError) as error:
                yield f"{check.name}: {error}"


def _cpu_s(pid: int) -> float:
    """Return the processor time of a process and of its children that have ended, or 0 if it is gone."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text("utf-8").rpartition(")")[2].split()
    except OSError:
        return 0.0
    return sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK")


def tried(exercise_id: str, first: int, seeds: int, sandbox: Sandbox, *, most_s: float, part_s: float) -> Tried:
    """Grade the reference of an exercise with `seeds` seeds from `first`, or with as many as the time allows."""
    exercise = find(exercise_id, hidden=True)
    text = next(control.answer for control in controls(exercise_id) if control.name == REFERENCE)
    grading, found = ReferenceGrading(exercise, text, sandbox), Tried(exercise_id, seeds)
    limit_s = most_s
    with compute_lock.held():
        for start in range(first, first + seeds, SEEDS_A_WORKER):
            host_s = time.process_time()
            for seed, failed, workers_s in grading.lost(range(start, min(start + SEEDS_A_WORKER, first + seeds))):
                host_s, before_s = time.process_time(), host_s
                found.cpu_s += host_s - before_s + workers_s
                found.seeds += 1
                if failed:
                    found.failures[seed] = failed
                if _takes_too_long(found, most_s):
                    limit_s = part_s
                if found.cpu_s > limit_s:
                    return found
    return found


def _takes_too_long(found: Tried, most_s: float) -> bool:
    """Tell by the first seeds whether all of them take too long; one seed that takes very long is enough."""
    margin = {1: 10, MEASURED: 1}.get(found.seeds)
    return margin is not None and found.cpu_s / found.seeds * found.wanted > margin * most_s


def main() -> int:
    """Print the table; see the module."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--exercises", nargs="+", metavar="ID", default=list(all_exercises()))
    parser.add_argument("--seeds", type=int, default=SEEDS, metavar="N", help=f"of each reference ({SEEDS})")
    parser.add_argument("--first", type=int, default=0, metavar="SEED", help="the first seed (0)")
    parser.add_argument("--most-s", type=float, default=MOST_S, metavar="S", help=f"for all seeds ({MOST_S:g})")
    parser.add_argument("--part-s", type=float, default=PART_S, metavar="S", help=f"if they take more ({PART_S:g})")
    parser.add_argument("--quick", action="store_true", help="three exercises with two seeds")
    options = parser.parse_args()
    exercises, seeds = (QUICK, 2) if options.quick else (options.exercises, options.seeds)
    sandbox, every = open_sandbox(), []
    print(f"{'exercise':<32}{'seeds':>8}{'failures':>10}{'CPU s':>10}{'CPU s a seed':>14}")
    for exercise_id in exercises:
        one = tried(exercise_id, options.first, seeds, sandbox, most_s=options.most_s, part_s=options.part_s)
        every.append(one)
        print(one, flush=True)
        for seed, failed in one.failures.items():
            print(f"  seed {seed}: {'; '.join(failed)}", flush=True)
    whole, lost = sum(one.seeds == one.wanted for one in every), sum(len(one.failures) for one in every)
    total_s = sum(one.cpu_s for one in every)
    print(f"{len(every)} references, {whole} of them with all {seeds} seeds; {lost} gradings lost a check", end="")
    print(f"; {total_s:.0f} s of processor time")
    return 1 if lost else 0


if __name__ == "__main__":
    sys.exit(main())
