"""Grade hand-ins side by side: an engine takes them and yields their records as they come.

`LocalEngine` grades with threads of this machine, `DaskEngine` on a cluster. Neither runs student code in its own
processes: that is the work of the sandbox, wherever it is.
"""

import os
import traceback
from collections.abc import Generator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from typing import Protocol

from autograder.classroom.hand_in import HandedIn
from autograder.classroom.status import CommandError
from autograder.host.records import SubmissionRecord
from autograder.host.sandbox import Sandbox


class EngineError(CommandError):
    """The engine cannot be used; the message says in one sentence why and what to do."""


class Engine(Protocol):
    """Grade hand-ins side by side."""

    def grade(
        self, hand_ins: Sequence[HandedIn], *, seed: int
    ) -> Generator[tuple[HandedIn, SubmissionRecord], None, None]:
        """Grade each of `hand_ins` once, in any order; a failure of ours becomes that hand-in's record.

        Closing the iterator early stops what has not begun.
        """


@dataclass(frozen=True)
class LocalEngine:
    """Grade on this machine: `slots` threads, each of which waits for a sandboxed process and compares.

    By default there is one slot a core, or one on a GPU.
    """

    sandbox: Sandbox
    slots: int | None = None

    def grade(
        self, hand_ins: Sequence[HandedIn], *, seed: int
    ) -> Generator[tuple[HandedIn, SubmissionRecord], None, None]:
        """Grade `hand_ins`; see `Engine`."""
        with ThreadPoolExecutor(self.slots or (1 if self.sandbox.has_cuda else len(os.sched_getaffinity(0)))) as pool:
            futures = {pool.submit(self._one, hand_in, seed): hand_in for hand_in in hand_ins}
            try:
                for future in as_completed(futures):
                    yield futures[future], future.result()
            except BaseException:  # an interruption, or the caller has had enough
                pool.shutdown(wait=False, cancel_futures=True)
                raise

    def _one(self, hand_in: HandedIn, seed: int) -> SubmissionRecord:
        try:
            return hand_in.grade(sandbox=self.sandbox, seed=seed)
        except Exception as error:  # one hand-in must not stop the class
            traceback.print_exc()
            return hand_in.not_graded(f"A fault of the grader: {type(error).__name__}: {error}")
