"""Grade on many machines with Dask: one worker a GPU, or a core where there is none; paths go in, JSON comes out.

    >>> with local_cluster(workers=2) as client:
    ...     engine = DaskEngine(client, seed_file)

A worker that dies gives its hand-in to another one; the record is written once, by the process that holds the journal.
``python -m autograder.host.batch.slurm`` starts the workers of a Slurm cluster.
"""

from __future__ import annotations

import os
from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from autograder.host.batch.dask_task import Order, grade_order, unreadiness
from autograder.host.batch.engine import EngineError
from autograder.host.batch.submitted import HandedIn
from autograder.host.records import GRADER_VERSION, SubmissionRecord

if TYPE_CHECKING:
    from distributed import Client

CONNECT_S = 10.0
START_S = 120.0  # a worker imports torch, on a busy machine


@dataclass(frozen=True)
class DaskEngine:
    """Grades on the workers of ``client``, which share the submitted folder and ``seed_file`` under the same names."""

    client: Client
    seed_file: Path
    level: str = "auto"
    trust: bool = False

    def require_ready(self, folder: Path) -> None:
        """Raise `EngineError`, before anything is graded, unless every worker can grade what lies in ``folder``."""
        if not self.client.scheduler_info(n_workers=-1)["workers"]:
            raise EngineError("The Dask cluster has no worker; start one with: dask worker SCHEDULER --nthreads 1.")
        asked = (str(folder), str(self.seed_file), GRADER_VERSION, self.level, self.trust)
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
            for future in as_completed(list(futures)):
                yield futures[future], _record(futures[future], future)
        finally:
            self.client.cancel(list(futures))

    def _order(self, one: HandedIn) -> Order:
        seed_file = str(self.seed_file)
        return Order(
            one.assignment, one.student, str(one.path), one.sha256, one.notes, seed_file, self.level, self.trust
        )


def _record(hand_in: HandedIn, future: Any) -> SubmissionRecord:
    if future.status != "finished":
        error = future.exception()
        return hand_in.not_graded(f"A fault of the grader's cluster: {type(error).__name__}: {error}")
    return SubmissionRecord.from_json(future.result())


@contextmanager
def connected(address: str) -> Iterator[Client]:
    """A client of the running scheduler at ``address``, such as ``tcp://10.0.0.1:8786``."""
    distributed = _distributed()
    try:
        client = distributed.Client(address, timeout=CONNECT_S, set_as_default=False)
    except (OSError, ValueError, RuntimeError) as error:
        raise EngineError(f"No Dask scheduler answers at {address}: {error}") from error
    with client:
        yield client


@contextmanager
def local_cluster(workers: int | None = None) -> Iterator[Client]:
    """A client of a cluster on this machine: one worker a GPU, or ``workers``, by default one a core.

    Its connections are encrypted with keys that only this process has, since whoever reaches a worker can run code.
    """
    distributed = _distributed()
    devices = sorted(path.name.removeprefix("nvidia") for path in Path("/dev").glob("nvidia[0-9]*"))
    count = workers or len(devices) or len(os.sched_getaffinity(0))
    environments = [{"CUDA_VISIBLE_DEVICES": devices[i % len(devices)]} if devices else {} for i in range(count)]
    security = distributed.Security.temporary()
    options = {"nthreads": 1, "dashboard_address": None, "security": security, "protocol": "tls"}
    cluster = distributed.SpecCluster(
        workers={
            i: {"cls": distributed.Nanny, "options": {**options, "env": environment}}
            for i, environment in enumerate(environments)
        },
        scheduler={
            "cls": distributed.Scheduler,
            "options": {
                "host": "127.0.0.1",
                "port": 0,
                "dashboard_address": None,
                "security": security,
                "protocol": "tls",
            },
        },
        security=security,
    )
    with cluster, distributed.Client(cluster, set_as_default=False) as client:
        client.wait_for_workers(count, timeout=START_S)
        yield client


def _distributed() -> Any:
    try:
        import distributed
    except ImportError:
        remedy = "install it with: pip install -c constraints.txt -e '.[cluster]'"
        raise EngineError(f"The engine dask needs Dask, which is not installed; {remedy}.") from None
    return distributed
