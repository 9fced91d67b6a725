"""Grade a class: an engine grades hand-ins in parallel, and yields each record when it is finished.

`LocalEngine` grades with threads of this machine, `DaskEngine` on a cluster. Neither runs student code in its own
processes; the sandbox does. `grade_class` grades the hand-ins that are not in the journal yet, and writes each record
at once.
"""

import contextlib
import functools
import hashlib
import os
import secrets
import traceback
from collections.abc import Callable, Generator, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Protocol

from autograder.classroom.batch.journal import Journal
from autograder.classroom.batch.slots import Slots
from autograder.classroom.hand_in import FRAMES, NOT_ENTERED, HandedIn, fault_of_ours
from autograder.classroom.status import CommandError
from autograder.host.records import WITHOUT_MARK, SubmissionRecord
from autograder.host.sandbox import Sandbox


class EngineError(CommandError):
    """The engine cannot be used; the message says in one sentence why and what to do."""


class Engine(Protocol):
    """Grade hand-ins in parallel."""

    def grade(
        self, hand_ins: Sequence[HandedIn], *, seed: int
    ) -> Generator[tuple[HandedIn, SubmissionRecord], None, None]:
        """Grade each of `hand_ins`, in any order; a failure of the grader is returned as that hand-in's record.

        A timeout beside other hand-ins may be the fault of those. It is believed only if the answer takes too long
        again when it is graded alone, after all others.
        Closing the iterator early cancels the hand-ins that were not started.
        """


@dataclass(frozen=True)
class LocalEngine:
    """Grade on this machine with `slots` threads, each of which waits for a sandboxed process and compares results.

    By default there is one slot per core, or one slot where speed is measured. A hand-in that keeps a slot for longer
    than `limit_s` is not graded: some step of the grader hangs. Its thread is left behind, and another one takes its
    place.
    """

    sandbox: Sandbox
    slots: int | None = None
    limit_s: float = 3600.0  # sessions have limits of their own, which add up to minutes

    def grade(
        self, hand_ins: Sequence[HandedIn], *, seed: int
    ) -> Generator[tuple[HandedIn, SubmissionRecord], None, None]:
        """Grade `hand_ins`; see `Engine`."""
        slots = self.slots or (1 if self.sandbox.measures else len(os.sched_getaffinity(0)))
        stopped: list[tuple[HandedIn, SubmissionRecord]] = []
        with closing(Slots(slots, self.limit_s, lambda hand_in: self._one(hand_in, seed))) as first:
            for hand_in, record in first.graded(hand_ins):
                if slots > 1 and len(hand_ins) > 1 and was_stopped(record):
                    stopped.append((hand_in, record))
                else:
                    yield hand_in, record
        records = {id(hand_in): record for hand_in, record in stopped}
        with closing(Slots(1, self.limit_s, lambda hand_in: self._one(hand_in, seed, records[id(hand_in)]))) as alone:
            yield from alone.graded([hand_in for hand_in, _ in stopped])

    def _one(self, hand_in: HandedIn, seed: int, record: SubmissionRecord | None = None) -> SubmissionRecord:
        """Grade a hand-in, or again what was stopped in its `record`."""
        try:
            if record is not None:
                return hand_in.grade_again(record, sandbox=self.sandbox, seed=seed)
            return hand_in.grade(sandbox=self.sandbox, seed=seed)
        except Exception as error:  # one hand-in must not stop the class
            traceback.print_exc(limit=FRAMES)
            return hand_in.not_graded(fault_of_ours(error))


def was_stopped(record: SubmissionRecord) -> bool:
    """Return whether an answer of the hand-in was stopped, perhaps because others used all processors or all memory."""
    return any(exercise.was_disturbed for exercise in record.exercises)


@dataclass(frozen=True)
class ClassRun:
    """The records of one run."""

    records: tuple[SubmissionRecord, ...]  # one per hand-in, in the same order
    from_journal: int  # number of records that were already in the journal

    @property
    def unfinished(self) -> tuple[SubmissionRecord, ...]:
        """Return the records without a mark; they are not in the journal, so the next run tries again."""
        return tuple(record for record in self.records if not is_final(record))


def is_final(record: SubmissionRecord) -> bool:
    """Return whether every exercise was graded; an error of the grader is not a result, nor is an undecided hand-in."""
    if record.sandbox.level == NOT_ENTERED:
        return False
    return all(exercise.status not in WITHOUT_MARK for exercise in record.exercises)


def grade_class(
    hand_ins: Sequence[HandedIn],
    journal: Journal,
    *,
    engine: Engine,
    seed: int,
    on_record: Callable[[SubmissionRecord], None] | None = None,
) -> ClassRun:
    """Grade on `engine` every hand-in that is not in the journal yet.

    The notes of a record are those of its hand-in now, since some are written after it was graded.
    `on_record` is called with each new record after it is written to disk, in the order in which they finish.
    """
    done = {
        hand_in.key: replace(record, notes=hand_in.remarks)
        for hand_in in hand_ins
        if (record := journal.get(hand_in.key)) is not None
    }
    open_ones = [hand_in for hand_in in hand_ins if hand_in.key not in done]
    from_journal = len(done)
    with closing(engine.grade(open_ones, seed=seed)) as graded:
        for hand_in, record in graded:
            if is_final(record):
                journal.append(record)
            done[hand_in.key] = record
            if on_record is not None:
                on_record(record)
    return ClassRun(tuple(done[hand_in.key] for hand_in in hand_ins), from_journal)


def secret_seed(path: Path) -> int:
    """Return the seed in the file `path`, or draw and store one; only the owner can read the file.

    All inputs of checks are drawn from it, so it must stay on this machine.

        >>> fingerprint(secret_seed(Path("work/secret_seed")))       # may be published
        '9c1a5f0e'
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    with contextlib.suppress(FileExistsError):
        # write atomically, because a half-written seed would be another seed without any error
        fresh = path.with_name(f"{path.name}.{os.getpid()}")
        fd = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(fd, "w") as file:
            file.write(str(secrets.randbits(63)))
            file.flush()
            os.fsync(file.fileno())
        try:
            os.link(fresh, path)
        finally:
            fresh.unlink()
    return int(path.read_text())


@functools.cache
def fingerprint(seed: int) -> str:
    """Return eight characters that identify a seed and do not reveal it."""
    # slow on purpose, because a seed has only 63 bits and its fingerprint is published
    return hashlib.scrypt(str(seed).encode(), salt=b"seed fingerprint", n=2**14, r=8, p=1, dklen=4).hex()
