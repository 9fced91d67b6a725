"""The judge: runs an exercise's checks on one answer and records the points of each.

The judge's process holds nothing of the student's except bytes. It distinguishes four failures. A wrong answer loses
the check. An answer that raises an exception loses the checks in which it raises. An answer that never returns or
breaks the protocol ends the exercise. A failure of the grader costs no points and is not graded.
"""

import contextlib
import traceback
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from autograder.host.channel import MalformedAnswerError
from autograder.host.clock.kernel_badge import time_kernels
from autograder.host.clock.speed_check import Timed, time_answer
from autograder.host.clock.step_bonus import Bonus, time_step
from autograder.host.compute_lock import compute_lock
from autograder.host.draw import Draw
from autograder.host.exercise import AnswerRefusedError, Check, CheckFailedError, Exercise
from autograder.host.kinds.table import KINDS
from autograder.host.records import CheckRecord, CheckStatus, ExerciseRecord, ExerciseStatus, KernelRecord
from autograder.host.sandbox import Sandbox, SandboxError
from autograder.host.session import AnswerFailedError, SandboxFailedError, Session
from autograder.host.setup_imports import absent_names
from autograder.host.value_cap import LIMITING, cap_note, most_points, not_compared
from autograder.protocol import ProtocolError
from autograder.protocol.requests.loads import LoadAnswer, Part

MESSAGE_CHARACTERS = 2_000
NOT_RUN = "Not run, for the same reason."  # which stands above, once
# replace the real message: an answer could use its exit status, for example, to reveal the case
STOPPED_IN = {
    ExerciseStatus.TIMED_OUT: "A program of the answer took longer than the {:g} s allowed for this exercise.",
    ExerciseStatus.OUT_OF_MEMORY: "A program of the answer used more memory than allowed.",
    ExerciseStatus.KILLED: "A process of the answer was killed.",
}
UNSEEN = "It ended in a case that you do not see; what came before it counts."


def judge(
    exercise: Exercise, parts: Mapping[str, str], *, sandbox: Sandbox, seed: int, show_speed: bool = False
) -> ExerciseRecord:
    """Run every check of `exercise` on the answer made of `parts` (name of a cell to its text, set-up first).

    Speed is measured where the sandbox measures; with `show_speed` also elsewhere, to be shown only. Several threads
    may judge at a time: one of them computes on the host, and their workers run side by side.
    """
    with compute_lock.held():
        return _judge(exercise, parts, sandbox, seed, show_speed)


def _judge(
    exercise: Exercise, parts: Mapping[str, str], sandbox: Sandbox, seed: int, show_speed: bool
) -> ExerciseRecord:
    cells = tuple(Part(name, text) for name, text in parts.items())
    load = LoadAnswer(exercise.kind.value, exercise.entry_point, cells, exercise.refused)
    absent = absent_names(exercise.setup, exercise.masked)
    student = Session(sandbox, load, masked=exercise.masked, absent=absent, wall_s=exercise.wall_s)
    clean = Session(sandbox, None, wall_s=exercise.wall_s)
    grading = _Grading(exercise, seed)
    answer = KINDS[exercise.kind](student, clean)
    try:
        for check in exercise.checks:
            grading.run(check, answer)
        grading.time(answer, load, sandbox=sandbox, shown=show_speed)
        all_passed = grading.ended is None and all(c.status is CheckStatus.PASSED for c in grading.checks)
        grading.badge = time_kernels(exercise, answer, sandbox=sandbox, seed=seed, right=all_passed)
    except (SandboxFailedError, SandboxError) as error:
        return not_graded(exercise, str(error))
    except Exception as error:  # a fault of the grader must neither cost points nor stop grading
        traceback.print_exc()
        return not_graded(exercise, f"A fault of the grader: {type(error).__name__}: {error}")
    finally:
        sessions = (clean, student, *getattr(answer, "others", ()))
        for session in sessions:
            grading.close(session)
    stopped = [session for session in sessions if session.stopped]
    if stopped:
        grading.stopped, grading.undisturbed = stopped[0].stopped, all(session.undisturbed for session in stopped)
    return grading.record(getattr(answer, "counted", {}))


@dataclass
class _Grading:
    """The state of one grading: the result of each check so far, and the failure that ended it early."""

    exercise: Exercise
    seed: int
    checks: list[CheckRecord] = field(default_factory=list)  # in the order of the exercise's checks
    ended: AnswerFailedError | None = None
    ended_unseen: bool = False  # whether `ended` is from a hidden check
    stopped: ExerciseStatus | None = None  # how a worker was stopped, also where a check calls the answer wrong
    undisturbed: bool = False  # whether no worker that was stopped had waited for a processor
    refused: bool = False  # whether the text of the answer is refused
    badge: KernelRecord | None = None
    seen: AnswerFailedError | None = None  # the first failure in a visible check
    raised: list[AnswerFailedError] = field(default_factory=list)
    changing: list[CheckRecord] = field(default_factory=list)  # where a program computes something else
    timed: Timed = field(default_factory=Timed)
    bonus: Bonus = field(default_factory=Bonus)

    def run(self, check: Check, answer: Any) -> None:
        """Run one check, or record why it was not run."""
        if self.ended is not None:
            why = f"Not run: {self.ended.message}" if self.ended_unseen else NOT_RUN
            self._add(check, CheckStatus.ERROR, 0.0, why)
            return
        if self.refused:
            self._add(check, CheckStatus.FAILED, 0.0, NOT_RUN)
            return
        try:
            with _counts_of_seen_checks(answer, check):
                check.run(answer, Draw(self.seed, self.exercise.id, check.name))
        except CheckFailedError as error:
            self._add(check, CheckStatus.FAILED, check.points * error.share, str(error))
            self.refused = isinstance(error, AnswerRefusedError)
            if error.changes and check.category in LIMITING:
                self.changing.append(self.checks[-1])
        except AnswerFailedError as error:
            self._fail(check, error)
        except (MalformedAnswerError, ProtocolError) as error:
            self._fail(check, AnswerFailedError(ExerciseStatus.MALFORMED_ANSWER, str(error), fatal=True))
        else:
            self._add(check, CheckStatus.PASSED, check.points, "")

    def time(self, answer: Any, load: LoadAnswer, *, sandbox: Sandbox, shown: bool) -> None:
        """Measure the speed; only an answer that earned points in a check counts as right."""
        right = self.ended is None and any(c.points for c in self.checks)
        all_right = self.ended is None and all(c.points for c in self.checks)
        try:
            self.timed = time_answer(
                self.exercise, answer, load, sandbox=sandbox, seed=self.seed, shown=shown, right=right
            )
            self.bonus = time_step(self.exercise, answer, sandbox=sandbox, seed=self.seed, right=all_right)
        except AnswerFailedError as error:
            self._all_failed(error)

    def close(self, session: Session) -> None:
        """End a worker; unrequested bytes from it make the whole answer malformed."""
        try:
            session.close()
        except AnswerFailedError as error:
            self._all_failed(error)

    def record(self, counted: Mapping[str, float]) -> ExerciseRecord:
        """Return the record of the grading."""
        unassessed = all(check.status is CheckStatus.ERROR for check in self.checks)
        if self.raised and all(error.unanswered for error in self.raised) and unassessed:
            return not_found(self.exercise, self.raised[0].message)
        status, message = ExerciseStatus.GRADED, ""
        if self.ended is not None:
            shown = self.seen if self.ended_unseen else self.ended
            status, message = self.ended.status, shown.message if shown else UNSEEN
        elif self.raised and all(c.status is CheckStatus.ERROR for c in self.checks):
            status, message = self.raised[0].status, self.raised[0].message
        elif self.stopped is not None:  # the second worker, as a rule: its checks failed, and a batch tries again alone
            status, message = self.stopped, STOPPED_IN[self.stopped].format(self.exercise.wall_s)
        checks = tuple(map(self.timed.decided, self.exercise.checks, self.checks))
        assessed = [c for c in checks if c.status is not CheckStatus.NOT_ASSESSED]
        points, most = round(sum(c.points for c in checks), 6), round(sum(c.max_points for c in assessed), 6)
        ended = not_compared(self.exercise.kind, checks) if self.ended is not None else []
        return ExerciseRecord(
            id=self.exercise.id,
            kind=self.exercise.kind,
            points=min(points, most_points(most)) if self.changing or ended else points,
            max_points=most,
            cap=cap_note(self.changing, ended) if points else "",
            badge=self.badge,
            status=status,
            message=message,
            checks=checks,
            counted=dict(counted),
            speed=self.timed.record or self.bonus.speed,
            bonus=self.bonus.record,
            undisturbed=self.undisturbed,
        )

    def _fail(self, check: Check, error: AnswerFailedError) -> None:
        self.raised.append(error)
        self.seen = self.seen or (None if check.hidden else error)
        self.ended = error if error.fatal else None
        self.ended_unseen = error.fatal and check.hidden
        self._add(check, CheckStatus.ERROR, 0.0, error.message)

    def _all_failed(self, error: AnswerFailedError) -> None:
        self.ended = error
        self.checks = [
            CheckRecord(c.name, c.category, c.hidden, CheckStatus.ERROR, 0.0, c.max_points, error.message)
            for c in self.checks
        ]

    def _add(self, check: Check, status: CheckStatus, points: float, message: str) -> None:
        # it may contain names that the answer chose, of any length and with characters that cannot be encoded
        message = message[:MESSAGE_CHARACTERS].encode("utf-8", "replace").decode()
        self.checks.append(
            CheckRecord(check.name, check.category, check.hidden, status, round(points, 6), check.points, message)
        )


@contextlib.contextmanager
def _counts_of_seen_checks(answer: Any, check: Check) -> Iterator[None]:
    """Undo what a hidden check adds to the counts: they are shown to students, and would tell of its cases."""
    counted: dict[str, float] = getattr(answer, "counted", {})
    before = dict(counted)
    try:
        yield
    finally:
        if check.hidden:
            counted.clear()
            counted.update(before)


def not_found(exercise: Exercise, message: str) -> ExerciseRecord:
    """Return the record of an answer that is missing or untouched: every check failed for the same reason."""
    total = round(sum(c.points for c in exercise.checks), 6)
    checks = _all_checks(exercise, CheckStatus.FAILED, message)
    return ExerciseRecord(exercise.id, exercise.kind, 0.0, total, ExerciseStatus.NOT_FOUND, message, checks)


def not_graded(
    exercise: Exercise, message: str, status: ExerciseStatus = ExerciseStatus.GRADER_ERROR
) -> ExerciseRecord:
    """Return the record of a failure of the grader, or of `status`: no check was assessed, so no points are lost."""
    checks = _all_checks(exercise, CheckStatus.NOT_ASSESSED, message)
    return ExerciseRecord(exercise.id, exercise.kind, 0.0, 0.0, status, message, checks)


def _all_checks(exercise: Exercise, status: CheckStatus, message: str) -> tuple[CheckRecord, ...]:
    return tuple(CheckRecord(c.name, c.category, c.hidden, status, 0.0, c.points, message) for c in exercise.checks)
