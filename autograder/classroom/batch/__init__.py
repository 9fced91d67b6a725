"""Grading many submissions: what was handed in, a journal that survives being killed, and the run that fills it."""

from autograder.classroom.batch.engine import Engine, EngineError
from autograder.classroom.batch.journal import Journal, JournalError, records_in
from autograder.classroom.batch.local_engine import LocalEngine
from autograder.classroom.batch.progress import stage
from autograder.classroom.batch.run import ClassRun, grade_class
from autograder.classroom.batch.seed import fingerprint, secret_seed
from autograder.classroom.batch.submitted import HandedIn, handed_in, nothing_handed_in, read_hand_in

__all__ = [
    "ClassRun",
    "Engine",
    "EngineError",
    "HandedIn",
    "Journal",
    "JournalError",
    "LocalEngine",
    "fingerprint",
    "grade_class",
    "handed_in",
    "nothing_handed_in",
    "read_hand_in",
    "records_in",
    "secret_seed",
    "stage",
]
