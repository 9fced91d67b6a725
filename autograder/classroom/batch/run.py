"""Grade a class: take the records that the journal holds, grade the other hand-ins, and write each record at once."""

from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass

from autograder.classroom.batch.engine import Engine
from autograder.classroom.batch.journal import Journal
from autograder.classroom.hand_in import NOT_ENTERED, HandedIn
from autograder.host.records import ExerciseStatus, SubmissionRecord


@dataclass(frozen=True)
class ClassRun:
    """The records of one run."""

    records: tuple[SubmissionRecord, ...]  # one a hand-in, in their order
    from_journal: int  # how many of them an earlier run had written down

    @property
    def unfinished(self) -> tuple[SubmissionRecord, ...]:
        """Return the records with an error of ours; they are not in the journal, so that the next run tries again."""
        return tuple(record for record in self.records if not is_final(record))


def is_final(record: SubmissionRecord) -> bool:
    """Tell whether every exercise was graded; an error of ours is an attempt, not a result."""
    if record.sandbox.level == NOT_ENTERED:
        return False
    return all(exercise.status is not ExerciseStatus.GRADER_ERROR for exercise in record.exercises)


def grade_class(
    hand_ins: Sequence[HandedIn],
    journal: Journal,
    *,
    engine: Engine,
    seed: int,
    on_record: Callable[[SubmissionRecord], None] | None = None,
) -> ClassRun:
    """Grade on `engine` every hand-in that the journal does not hold yet.

    `on_record` is called with each new record once it is on disk, in the order in which they finish.
    """
    done = {hand_in.key: record for hand_in in hand_ins if (record := journal.get(hand_in.key)) is not None}
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
