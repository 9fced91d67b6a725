"""Where a class is graded: an engine takes hand-ins and gives back records as they come.

Local threads (`LocalEngine`) serve one machine, a Dask cluster (`DaskEngine`) serves many. Neither runs student code in
its own processes: that is the sandbox's work, wherever it is.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from typing import Protocol

from autograder.classroom.batch.submitted import HandedIn
from autograder.host.records import SubmissionRecord


class EngineError(Exception):
    """The engine cannot be used; the message says in one sentence why and what to do."""


class Engine(Protocol):
    """Grades hand-ins side by side."""

    def grade(
        self, hand_ins: Sequence[HandedIn], *, seed: int
    ) -> Generator[tuple[HandedIn, SubmissionRecord], None, None]:
        """Grade each of ``hand_ins`` once, in any order; a failure of ours becomes that hand-in's record.

        Closing the iterator early stops what has not begun.
        """
