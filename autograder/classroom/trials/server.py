"""Work off trials, one at a time: take a request, judge its answer by the visible checks, leave a reply for its owner.

A request is renamed into a folder that nobody else can open before it is read, so it is taken once, and nobody can
replace it any more. It stays there until its reply is written. So a server that was killed goes on: at the next start
it takes up what it had taken. A request during which servers end is given up after `MOST_STARTS` of them.
"""

import contextlib
import os
import re
import time
import traceback
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from autograder.classroom.trials.board import Board
from autograder.classroom.trials.inbox import Inbox, Waiting, account
from autograder.exercises import UnknownExerciseError, find
from autograder.host.exercise import Exercise
from autograder.host.records import ExerciseRecord, ExerciseStatus
from autograder.host.report.safe_text import one_line
from autograder.host.spool import (
    MAX_REQUEST_BYTES,
    NotALetterError,
    TrialReply,
    read_bounded,
    read_request,
    reply_bytes,
    write_for,
)

Judge = Callable[[Exercise, Mapping[str, str]], ExerciseRecord]
"""Runs the visible checks of an exercise on its answers, from inputs that were never used before."""
MOST_STARTS = 2
MOST_UNSENT = 64
REPLIES_KEPT_S = 3_600.0
TIDY_S = 60.0
_TAKEN = re.compile(r"(\d+)\.([0-9a-f]{32})\.(\d)")  # owner, name, how many servers have started to work on it
GIVEN_UP = "The course's machine ended while it worked on this answer, twice; it does not try again."
FAULT = "The grader failed on the course's machine, by a fault of its own; tell your instructor."


@dataclass(frozen=True)
class Taken:
    """A request that was taken: its file, the user who owns it, and the name of its reply."""

    file: str
    owner: int
    name: str
    starts: int = 1


@dataclass
class TrialServer:
    """Work off the requests of an `inbox`; `taken` and `replies` are open folders. `say` gets a line on each trial."""

    inbox: Inbox
    taken: int
    replies: int
    judge: Judge
    where: str  # names the machine's device to students
    board: Board | None = None
    say: Callable[[str], None] = print
    busy_since_s: float | None = None  # on the monotonic clock, while an answer is judged
    _unsent: deque[tuple[Taken, TrialReply]] = field(default_factory=lambda: deque(maxlen=MOST_UNSENT))
    _tidied_s: float = float("-inf")

    def resume(self) -> int:
        """Work off what an earlier server had taken and return how many requests there were."""
        found = [match for name in sorted(os.listdir(self.taken)) if (match := _TAKEN.fullmatch(name))]  # noqa: PTH208  # an open folder
        for match in found:
            owner, name, starts = int(match[1]), match[2], int(match[3])
            one = Taken(f"{owner}.{name}.{starts + 1}", owner, name, starts + 1)
            if self._is_answered(name):
                os.unlink(match[0], dir_fd=self.taken)
                continue
            os.rename(match[0], one.file, src_dir_fd=self.taken, dst_dir_fd=self.taken)
            self._work_off(one)
        return len(found)

    def turn(self) -> bool:
        """Work off one request; return False if there is none whose turn it is."""
        self._tidy()
        for _ in range(len(self._unsent)):
            self._deliver(*self._unsent.popleft())
        self.inbox.look()
        waiting = self.inbox.next()
        if waiting is None:
            return False
        self.inbox.forget(waiting)
        taken = self._take(waiting)
        if taken is not None:
            self._work_off(taken)
            self.inbox.ended(waiting.owner)
        return True

    def _take(self, waiting: Waiting) -> Taken | None:
        one = Taken(f"{waiting.owner}.{waiting.name}.1", waiting.owner, waiting.name)
        try:
            os.rename(waiting.name, one.file, src_dir_fd=self.inbox.folder, dst_dir_fd=self.taken)
        except FileNotFoundError:  # withdrawn, or taken by the server of another device
            return None
        except OSError:
            self.inbox.ended(waiting.owner)  # a file that cannot be moved must not keep the turn from others
            raise
        return one

    def _work_off(self, one: Taken) -> None:
        who = account(one.owner) or str(one.owner)
        started_s = time.monotonic()
        try:
            data, owner = read_bounded(self.taken, one.file, MAX_REQUEST_BYTES)
            if owner != one.owner:
                raise NotALetterError("its owner changed")
            request = read_request(data)
        except (OSError, NotALetterError) as error:
            self.say(f"{who}: not a request: {one_line(str(error))}")
            self._deliver(one, TrialReply(f"The course's machine could not read this trial: {one_line(str(error))}."))
            return
        self.busy_since_s = started_s
        try:
            reply = self._reply(one, who, request.exercise, request.answers)
        finally:
            self.busy_since_s = None
        record = reply.record
        told = f"{record.points:g} of {record.max_points:g} points" if record else one_line(reply.sentence)
        speed = f", ratio {record.speed.ratio:.2f}" if record and record.speed else ""
        self.say(f"{who}: {one_line(request.exercise)}, {told}{speed}, {time.monotonic() - started_s:.0f} s")
        self._deliver(one, reply)

    def _reply(self, one: Taken, who: str, exercise_id: str, answers: Mapping[str, str]) -> TrialReply:
        if one.starts > MOST_STARTS:
            return TrialReply(GIVEN_UP)
        try:
            exercise = find(exercise_id)  # without its hidden part
        except UnknownExerciseError as error:
            return TrialReply(one_line(str(error)))
        wanted = (*exercise.needs, exercise.id)
        try:
            record = self.judge(exercise, {name: answers[name] for name in wanted if name in answers})
        except Exception:  # one trial must not stop the others
            traceback.print_exc()
            return TrialReply(FAULT)
        if record.status is ExerciseStatus.GRADER_ERROR:
            self.say(f"{who}: {one_line(record.message)}")
            return TrialReply(FAULT)
        return TrialReply(
            f"Checked on the course's machine ({self.where}). {self._entered(who, record)}".strip(), record
        )

    def _entered(self, who: str, record: ExerciseRecord) -> str:
        try:
            return self.board.enter(who, record) if self.board else ""
        except OSError as error:
            self.say(f"the board could not be written: {error.strerror or error}")
            return ""

    def _deliver(self, one: Taken, reply: TrialReply) -> None:
        """Write the reply, then forget the request; what cannot be written is tried again before the next turn."""
        try:
            if not self._is_answered(one.name):  # a name serves once
                write_for(self.replies, one.name, reply_bytes(reply), one.owner)
        except OSError as error:
            self.say(f"a reply could not be written: {error.strerror or error}; it is tried again")
            self._unsent.append((one, reply))
            return
        with contextlib.suppress(OSError):
            os.unlink(one.file, dir_fd=self.taken)

    def _is_answered(self, name: str) -> bool:
        try:
            os.stat(name, dir_fd=self.replies, follow_symlinks=False)
        except FileNotFoundError:
            return False
        return True

    def _tidy(self) -> None:
        """Remove old replies, and what an ended server left of a reply, once in a while."""
        if time.monotonic() - self._tidied_s < TIDY_S:
            return
        self._tidied_s = time.monotonic()
        for name in os.listdir(self.replies):  # noqa: PTH208  # an open folder
            with contextlib.suppress(OSError):
                if time.time() - os.stat(name, dir_fd=self.replies).st_mtime > REPLIES_KEPT_S:
                    os.unlink(name, dir_fd=self.replies)
