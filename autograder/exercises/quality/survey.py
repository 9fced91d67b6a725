"""Measure an exercise's checks: controls must get their stated marks, small edits of the reference must lose points.

All answers here are our own. They are graded like a student's, in the same sandbox.
"""

import json
import random
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, replace
from typing import Any

from autograder.exercises import find
from autograder.exercises.quality.controls import controls
from autograder.exercises.quality.foreseen_marks import unforeseen
from autograder.exercises.quality.mutants import Mutant, mutants
from autograder.exercises.registry import hidden_part
from autograder.host.draw import Draw
from autograder.host.exercise import REFERENCE, Check, CheckFailedError, Control, Exercise
from autograder.host.grading import graded_parts
from autograder.host.judge import judge
from autograder.host.records import ExerciseRecord
from autograder.host.sandbox import Sandbox

LEAST_SCORE = 0.8
MUTANT_WALL_S = 10.0  # some mutants never terminate
SMALLEST_SAMPLE_JUDGED = 20  # with fewer mutants, a score means little


class NotSurveyedError(Exception):
    """One of our answers could not be graded, for a reason outside the exercise."""

    exit_code = 4  # exit status of a command that raises it


@dataclass(frozen=True)
class ControlResult:
    """The result of a control."""

    name: str
    stated: str
    points: float
    as_stated: bool
    unforeseen: str = ""  # a sentence, where no student could foresee the mark


@dataclass(frozen=True)
class MutantResult:
    """The check that detected a mutant, if any."""

    mutant: str
    killed_by: str  # the check's name, or an empty string
    visible: bool  # whether students see that check


@dataclass(frozen=True)
class Quality:
    """The measured quality of one exercise's checks."""

    exercise: str
    max_points: float
    reference_points: float
    grading_s: float  # for the reference, including the start of the worker
    controls: tuple[ControlResult, ...]
    mutants: tuple[MutantResult, ...]
    of_mutants: int  # number of all mutants; `mutants` may be a sample
    equivalent: int  # number of mutants left out: they are listed with the exercise as equivalent

    @property
    def visible_score(self) -> float:
        """Return the share of mutants that visible checks detect."""
        return self._share(sum(bool(m.killed_by) and m.visible for m in self.mutants))

    @property
    def score(self) -> float:
        """Return the share of mutants that any check detects."""
        return self._share(sum(bool(m.killed_by) for m in self.mutants))

    @property
    def failures(self) -> tuple[str, ...]:
        """Return one sentence for each failure."""
        found = []
        if self.reference_points < self.max_points:
            found.append(f"The reference gets {self.reference_points:g} of {self.max_points:g} points.")
        found += [
            f"Control {c.name!r} gets {c.points:g} points; it must get {c.stated}."
            for c in self.controls
            if not c.as_stated
        ]
        found += [f"Control {c.name!r}: {c.unforeseen}" for c in self.controls if c.unforeseen]
        if len(self.mutants) >= SMALLEST_SAMPLE_JUDGED and self.score < LEAST_SCORE:
            found.append(f"The checks notice {self.score:.0%} of the mutants; {LEAST_SCORE:.0%} are asked for.")
        return tuple(found)

    def _share(self, count: int) -> float:
        return count / len(self.mutants) if self.mutants else 1.0


def survey(exercise_id: str, *, sandbox: Sandbox, seed: int, sample: int | None = None, slots: int = 1) -> Quality:
    """Grade reference, controls and mutants of one exercise; if given, `sample` limits controls and mutants.

    Raises `LookupError` if the exercise's hidden part is not installed, since it contains the answers, and
    `NotSurveyedError` if grading fails.
    """
    exercise, part = _without_speed(find(exercise_id, hidden=True)), hidden_part(exercise_id)
    answers = {control.name: control for control in controls(exercise_id)}
    if part is None or REFERENCE not in answers:
        raise LookupError(f"{exercise_id} has no hidden part with a control called {REFERENCE!r}; nothing to survey.")
    every = mutants(answers[REFERENCE].answer)
    changed = [m for m in every if not m.is_listed(part.equivalent)]
    started = time.monotonic()
    reference = _judged(exercise, answers.pop(REFERENCE).answer, sandbox, seed)
    grading_s = time.monotonic() - started
    with ThreadPoolExecutor(slots) as pool:
        tried = pool.map(lambda c: _control(exercise, c, sandbox, seed), _sampled(list(answers.values()), sample))
        judged = pool.map(lambda m: _mutant(exercise, m, sandbox, seed), _sampled(changed, sample))
        return Quality(
            exercise_id,
            reference.max_points,
            reference.points,
            grading_s,
            tuple(tried),
            tuple(judged),
            len(changed),
            len(every) - len(changed),
        )


def _without_speed(exercise: Exercise) -> Exercise:
    """Return the exercise without its speed check, which is slow and has its own tests."""
    return replace(exercise, speed=None)


def _sampled(items: list[Any], sample: int | None) -> list[Any]:
    if sample is None or sample >= len(items):
        return items
    return random.Random(0).sample(items, sample)  # the same sample each time


def _judged(exercise: Exercise, answer: str, sandbox: Sandbox, seed: int) -> ExerciseRecord:
    parts = graded_parts(exercise, {exercise.id: answer})
    record = judge(exercise, parts, sandbox=sandbox, seed=seed)
    if record.status == "grader_error":
        raise NotSurveyedError(f"{exercise.id} could not be graded here: {record.message}")
    return record


def _control(exercise: Exercise, control: Control, sandbox: Sandbox, seed: int) -> ControlResult:
    record = _judged(exercise, control.answer, sandbox, seed)
    stated = f"{'less than ' if control.below else ''}{control.marks:g}"
    return ControlResult(
        control.name, stated, record.points, control.passes(record.points), unforeseen(control, record)
    )


def _mutant(exercise: Exercise, mutant: Mutant, sandbox: Sandbox, seed: int) -> MutantResult:
    first = _FirstFailure()
    stopping = replace(exercise, checks=tuple(map(first.watching, exercise.checks)), wall_s=MUTANT_WALL_S)
    _judged(stopping, mutant.text, sandbox, seed)
    killer = first.failed
    return MutantResult(str(mutant), killer.name if killer else "", bool(killer and not killer.hidden))


class _FirstFailure:
    """Wrap checks so that none runs after the first failure, since one failure is enough to detect a mutant."""

    def __init__(self) -> None:
        self.failed: Check | None = None

    def watching(self, check: Check) -> Check:
        return replace(check, run=self._watched(check))

    def _watched(self, check: Check) -> Callable[[Any, Draw], None]:
        def run(answer: Any, draw: Draw) -> None:
            if self.failed is not None:
                raise CheckFailedError("Not run.")
            try:
                check.run(answer, draw)
            except Exception:
                self.failed = check
                raise

        return run


def failing(qualities: Sequence[Quality]) -> list[str]:
    """Return all failures, each with the exercise's id in front."""
    return [f"{q.exercise}: {sentence}" for q in qualities for sentence in q.failures]


_HEAD = f"{'exercise':<26}{'reference':>10}{'controls':>10}{'mutants':>14}{'visible':>9}{'all':>6}{'seconds':>9}"


def quality_text(qualities: Sequence[Quality], *, survivors: bool = True) -> str:
    """Return one line per exercise, then the failures, then the mutants that no check detected."""
    lines = [_HEAD, *map(_line, qualities)]
    for quality in qualities:
        lines += [f"{quality.exercise}: {sentence}" for sentence in quality.failures]
    if survivors:
        for quality in qualities:
            missed = [m.mutant for m in quality.mutants if not m.killed_by]
            lines += [f"{quality.exercise}: no check notices {mutant}" for mutant in missed]
    return "\n".join(lines)


def _line(quality: Quality) -> str:
    reference = f"{quality.reference_points:g}/{quality.max_points:g}"
    stated = f"{sum(c.as_stated for c in quality.controls)}/{len(quality.controls)}"
    tried = f"{len(quality.mutants)}/{quality.of_mutants}"
    return (
        f"{quality.exercise:<26}{reference:>10}{stated:>10}{tried:>14}"
        f"{quality.visible_score:>9.0%}{quality.score:>6.0%}{quality.grading_s:>9.1f}"
    )


def quality_json(qualities: Sequence[Quality]) -> str:
    """Return all results as JSON."""
    return json.dumps(
        [{**asdict(q), "visible_score": q.visible_score, "score": q.score, "failures": q.failures} for q in qualities],
        indent=2,
    )
