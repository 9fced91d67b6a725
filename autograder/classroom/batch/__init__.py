"""Grade many submissions: a journal that survives a killed process, engines, and the run that writes the journal."""

from autograder.classroom.batch.engine import (
    ClassRun,
    Engine,
    EngineError,
    LocalEngine,
    fingerprint,
    grade_class,
    is_final,
    secret_seed,
)
from autograder.classroom.batch.journal import Journal, JournalError, find_record, records_in
from autograder.classroom.batch.progress import stage

__all__ = [
    "ClassRun",
    "Engine",
    "EngineError",
    "Journal",
    "JournalError",
    "LocalEngine",
    "find_record",
    "fingerprint",
    "grade_class",
    "is_final",
    "records_in",
    "secret_seed",
    "stage",
]
