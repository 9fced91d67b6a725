"""Grading many submissions: a journal that survives being killed, and the loop that fills it."""

from autograder.host.batch.journal import Journal, JournalError, records_in

__all__ = ["Journal", "JournalError", "records_in"]
