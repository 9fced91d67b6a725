"""Grade on many machines with Dask: paths go in, JSON comes out.

    >>> with local_cluster(2) as client:
    ...     engine = DaskEngine(client, seed_file)

A worker that dies gives its hand-in to another one; the record is written once, by the process that holds the journal.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from autograder.classroom.batch.dask_task import Order, grade_order, unreadiness
from autograder.classroom.batch.engine import EngineError
from autograder.classroom.batch.submitted import HandedIn
from autograder.host.records import GRADER_VERSION, SubmissionRecord

if TYPE_CHECKING:
    from distributed import Client


@dataclass(frozen=True)
class DaskEngine:
    """Grades on the workers of ``client``, which share the submitted folder and ``seed_file`` under the same names."""

    client: Client
    seed_file: Path
    level: str = "auto"
    trust: bool = False
    device: str = "cpu"

    def require_ready(self, folder: Path) -> None:
        """Raise `EngineError`, before anything is graded, unless every worker can grade what lies in ``folder``."""
        if not self.client.scheduler_info(n_workers=-1)["workers"]:
            raise EngineError("The Dask cluster has no worker; start one with: dask worker SCHEDULER --nthreads 1.")
        asked = (str(folder), str(self.seed_file), GRADER_VERSION, self.level, self.trust, self.device)
        for address, sentence in sorted(self.client.run(unreadiness, *asked).items()):
            if sentence:
                raise EngineError(f"The Dask worker {address} {sentence}")

    def grade(
        self, hand_ins: Sequence[HandedIn], *, seed: int
    ) -> Generator[tuple[HandedIn, SubmissionRecord], None, None]:
        """Grade ``hand_ins``; see `Engine`. ``seed`` is what the shared file holds, and is not sent."""
        from distributed import as_completed

        futures = {self.client.submit(grade_order, self._order(one), pure=False, retries=0): one for one in hand_ins}
        try:
            for future in as_completed(list(futures), loop=self.client.loop):
                yield futures[future], _record(futures[future], future)
        finally:
            self.client.cancel(list(futures))

    def _order(self, one: HandedIn) -> Order:
        return Order(
            assignment=one.assignment,
            student=one.student,
            path=str(one.path),
            sha256=one.sha256,
            notes=one.notes,
            seed_file=str(self.seed_file),
            version=GRADER_VERSION,
            level=self.level,
            trust=self.trust,
            device=self.device,
        )


def _record(hand_in: HandedIn, future: Any) -> SubmissionRecord:
    if future.status != "finished":
        error = future.exception()
        return hand_in.not_graded(f"A fault of the grader's cluster: {type(error).__name__}: {error}")
    return SubmissionRecord.from_json(future.result())
