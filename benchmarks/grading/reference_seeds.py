"""Grade the reference solution of each exercise with many seeds: every check must pass with each of them.

    python -m benchmarks.grading.reference_seeds [--exercises ID ...] [--seeds N] [--first SEED] [--kept FILE] [--quick]

All checks run as when a student is graded, on the same drawn inputs and with workers in the sandbox. Only the workers
are not new for each seed: one worker loads the answer anew for each of some seeds, and a check that drew nothing with
the first of them is not repeated with the others, since no seed can change it. An exercise whose seeds would take more
than `--most-s` seconds of processor time gets as many as fit in `--part-s`. The time is that of the host and of the
workers together. Exit status 1 if a reference lost a check with a seed; the line says with which.

With `--kept`, a run continues where FILE ends, grades again what failed there, and prints the table of all that FILE
then holds. Delete FILE where checks or references have changed since. `--only-print` grades nothing more.
"""

import argparse
import datetime
import fcntl
import gc
import json
import os
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

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
KEEP_EACH_S = 10.0  # so that little is lost if the run is ended
QUICK = ("00_read_a_table", "01_multi_head_attention", "05_bias_silu_pass", "12_bias_quick_gelu")


@dataclass
class Tried:
    """Hold how many seeds were tried on an exercise, what failed with which, and the processor time of all."""

    exercise: str
    wanted: int
    seeds: int = 0
    failures: dict[int, list[str]] = field(default_factory=dict)  # by seed, until it passes when graded again
    again: list[int] = field(default_factory=list)  # the seeds that were graded again since they had failed
    cpu_s: float = 0.0
    days: list[str] = field(default_factory=list)  # on which seeds were graded

    def __str__(self) -> str:
        a_seed, days = self.cpu_s / max(self.seeds, 1), "" if len(self.days) < 2 else f"  {len(self.days)} days"
        return f"{self.exercise:<32}{self.seeds:>8}{len(self.failures):>10}{self.cpu_s:>10.1f}{a_seed:>14.3f}{days}"


class Watched:
    """A draw that tells whether a check used it."""

    def __init__(self, draw: Draw) -> None:
        self._draw, self.is_used = draw, False

    def __getattr__(self, name: str) -> Any:
        self.is_used = True
        return getattr(self._draw, name)


class ReferenceGrading:
    """The checks of one exercise on its reference solution, with workers that serve several seeds.

    Each call of `lost` is one life of the workers, in which checks that draw nothing run once.
    """

    def __init__(self, exercise: Exercise, text: str, sandbox: Sandbox) -> None:
        self._exercise, self._sandbox = exercise, sandbox
        cells = tuple(Part(name, cell) for name, cell in graded_parts(exercise, {exercise.id: text}).items())
        self._load = LoadAnswer(exercise.kind.value, exercise.entry_point, cells)

    def lost(self, seeds: Sequence[int]) -> Iterator[tuple[int, list[str], float]]:
        """Yield for each seed the checks that failed with their messages, and the workers' processor time since."""
        masked, absent = self._exercise.masked, absent_names(self._exercise.setup, self._exercise.masked)
        student = Session(self._sandbox, self._load, masked=masked, absent=absent, wall_s=WALL_S)
        clean = Session(self._sandbox, None, wall_s=WALL_S)
        used_s, settled = 0.0, set[str]()
        try:
            for seed in seeds:
                student.reload(self._load, ())
                answer: Any = KINDS[self._exercise.kind](student, clean)
                failed = list(self._failed(answer, seed, settled))
                before_s, used_s = used_s, _workers_s(student, clean)
                others = getattr(answer, "others", ())  # further workers that this kind asked
                others_s = _workers_s(*others)
                for session in others:
                    session.close()
                yield seed, failed, max(used_s - before_s, 0.0) + others_s
        finally:
            student.close()
            clean.close()

    def _failed(self, answer: Any, seed: int, settled: set[str]) -> Iterator[str]:
        """Yield what failed; `settled` names the checks that passed without a draw, and is completed."""
        for check in self._exercise.checks:
            if check.name in settled:
                continue
            draw: Any = Watched(Draw(seed, self._exercise.id, check.name))
            try:
                check.run(answer, draw)
            except (CheckFailedError, AnswerFailedError, MalformedAnswerError, ProtocolError) as error:
                yield f"{check.name}: {error}"
            else:
                if not draw.is_used:
                    settled.add(check.name)


def _workers_s(*sessions: Session) -> float:
    """Return the processor time of those workers that were started."""
    return sum(_cpu_s(session.started_pid) for session in sessions)


def _cpu_s(pid: int) -> float:
    """Return the processor time of a process and of its children that have ended, or 0 if it is gone."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text("utf-8").rpartition(")")[2].split()
    except OSError:
        return 0.0
    return sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK")


class Trials:
    """The references that are graded, and what is known of each.

    Several runs may keep theirs in one file if each grades other exercises.
    """

    def __init__(self, wanted: int, first: int, kept: Path | None) -> None:
        self._wanted, self._first, self._kept = wanted, first, kept
        self._graded, self._kept_s = set[str](), time.monotonic()
        self._found = self._held()

    def of(self, exercise_id: str) -> Tried:
        """Return what is known of an exercise."""
        return self._found.setdefault(exercise_id, Tried(exercise_id, self._wanted))

    def keep(self) -> None:
        """Write what this run found into the file, if there is one."""
        self._kept_s = time.monotonic()
        if self._kept is None:
            return
        folder = os.open(self._kept.parent, os.O_RDONLY)  # the lock is of the folder, so no further file is left there
        try:
            fcntl.flock(folder, fcntl.LOCK_EX)
            found = self._held() | {name: self._found[name] for name in self._graded}
            exercises = {name: asdict(one) for name, one in sorted(found.items()) if one.seeds}
            beside = self._kept.with_suffix(".new")
            beside.write_text(json.dumps({"first": self._first, "exercises": exercises}, indent=1) + "\n", "utf-8")
            beside.replace(self._kept)
        finally:
            os.close(folder)

    def _held(self) -> dict[str, Tried]:
        """Return what the file holds."""
        if self._kept is None or not self._kept.exists():
            return {}
        held = json.loads(self._kept.read_text("utf-8"))
        if held["first"] != self._first:
            raise SystemExit(f"{self._kept} begins with seed {held['first']}; give --first {held['first']}.")
        return {name: _read(name, one, self._wanted) for name, one in held["exercises"].items()}

    def grade(self, exercise_id: str, sandbox: Sandbox, *, most_s: float, part_s: float) -> Tried:
        """Grade a reference with the seeds that are left, or with as many as the time allows; return all results."""
        exercise, found = find(exercise_id, hidden=True), self.of(exercise_id)
        self._graded.add(exercise_id)
        text = next(control.answer for control in controls(exercise_id) if control.name == REFERENCE)
        grading, limit_s, part = ReferenceGrading(exercise, text, sandbox), most_s, Tried(exercise_id, found.wanted)
        left = [*found.failures, *range(self._first + found.seeds, self._first + found.wanted)]
        with compute_lock.held():
            for start in range(0, len(left), SEEDS_A_WORKER):
                host_s = time.process_time()
                for seed, failed, workers_s in grading.lost(left[start : start + SEEDS_A_WORKER]):
                    host_s, before_s = time.process_time(), host_s
                    _note(found, seed, failed, host_s - before_s + workers_s, is_new=seed >= self._first + found.seeds)
                    part.cpu_s, part.seeds = part.cpu_s + host_s - before_s + workers_s, part.seeds + 1
                    if time.monotonic() - self._kept_s > KEEP_EACH_S:
                        self.keep()
                    if _takes_too_long(part, len(left), most_s):
                        limit_s = part_s
                    if part.cpu_s > limit_s:
                        return found
        return found


def _read(name: str, held: Mapping[str, Any], wanted: int) -> Tried:
    """Return what a file holds of an exercise; JSON knows no numbers as keys."""
    failures = {int(seed): failed for seed, failed in held["failures"].items()}
    return Tried(**{**held, "exercise": name, "wanted": wanted, "failures": failures})


def _note(found: Tried, seed: int, failed: list[str], cpu_s: float, *, is_new: bool) -> None:
    found.cpu_s += cpu_s
    found.days = sorted({*found.days, datetime.datetime.now(datetime.UTC).date().isoformat()})
    if is_new:
        found.seeds += 1
    else:
        found.again = sorted({*found.again, seed})
        found.failures.pop(seed, None)
    if failed:
        found.failures[seed] = failed


def _takes_too_long(part: Tried, wanted: int, most_s: float) -> bool:
    """Tell by the first seeds whether all of them take too long; one seed that takes very long is enough."""
    margin = {1: 10, MEASURED: 1}.get(part.seeds)
    return margin is not None and part.cpu_s / part.seeds * wanted > margin * most_s


def main() -> int:
    """Print the table; see the module."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--exercises", nargs="+", metavar="ID", default=list(all_exercises()))
    parser.add_argument("--seeds", type=int, default=SEEDS, metavar="N", help=f"of each reference ({SEEDS})")
    parser.add_argument("--first", type=int, default=0, metavar="SEED", help="the first seed (0)")
    parser.add_argument("--most-s", type=float, default=MOST_S, metavar="S", help=f"for all seeds ({MOST_S:g})")
    parser.add_argument("--part-s", type=float, default=PART_S, metavar="S", help=f"if they take more ({PART_S:g})")
    parser.add_argument("--kept", type=Path, metavar="FILE", help="continue where this file ends, and keep all there")
    parser.add_argument("--only-print", action="store_true", help="grade nothing, print what the file holds")
    parser.add_argument("--quick", action="store_true", help="four exercises with two seeds")
    options = parser.parse_args()
    gc.collect()
    gc.freeze()  # a search for garbage among all that is loaded takes long
    exercises, seeds = (QUICK, 2) if options.quick else (options.exercises, options.seeds)
    trials, every = Trials(seeds, options.first, options.kept), []
    sandbox = None if options.only_print else open_sandbox()
    print(f"{'exercise':<32}{'seeds':>8}{'failures':>10}{'CPU s':>10}{'CPU s a seed':>14}")
    for exercise_id in exercises:
        one = trials.of(exercise_id)
        if sandbox is not None:
            one = trials.grade(exercise_id, sandbox, most_s=options.most_s, part_s=options.part_s)
            trials.keep()
        every.append(one)
        print(one, flush=True)
        if one.again:
            print(f"  failed once, and were graded again: {', '.join(map(str, one.again))}", flush=True)
        for seed, failed in one.failures.items():
            print(f"  seed {seed}: {'; '.join(failed)}", flush=True)
    whole, lost = sum(one.seeds >= one.wanted for one in every), sum(len(one.failures) for one in every)
    total_s = sum(one.cpu_s for one in every)
    print(f"{len(every)} references, {whole} of them with all {seeds} seeds; {lost} gradings lost a check", end="")
    print(f"; {total_s:.0f} s of processor time")
    return 1 if lost else 0


if __name__ == "__main__":
    sys.exit(main())
