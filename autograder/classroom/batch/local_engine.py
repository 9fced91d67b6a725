"""Grade on this machine: one slot a core, each a thread that waits for a sandboxed process and compares."""

from __future__ import annotations

import os
import traceback
from collections.abc import Generator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass

from autograder.classroom.batch.submitted import HandedIn
from autograder.host.records import SubmissionRecord
from autograder.host.sandbox import Sandbox


@dataclass(frozen=True)
class LocalEngine:
    """``slots`` hand-ins at a time, by default one a core, or one on a GPU."""

    sandbox: Sandbox
    slots: int | None = None

    def grade(
        self, hand_ins: Sequence[HandedIn], *, seed: int
    ) -> Generator[tuple[HandedIn, SubmissionRecord], None, None]:
        """Grade ``hand_ins``; see `Engine`."""
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
