"""Grade on many machines with Dask: workers get paths and return records as JSON.

    >>> with local_cluster(2) as client:
    ...     engine = DaskEngine(client, seed_file)

If a worker dies, another one gets its hand-in. The record is written once, by the process that has the journal open.
A Dask worker is trusted: like every host it opens a sandbox and never loads a student's objects. The secret seed is not
sent: every machine reads it from a shared file.

There is one worker per GPU, or per core without a GPU, each with a single thread. Clusters started here encrypt their
connections with private keys, since anyone who can connect to a worker can run code on it. Further settings of Slurm's
jobs (partition, account, time) are read from `~/.config/dask/jobqueue.yaml`; see dask-jobqueue.
"""

import functools
import logging
import os
import platform
import shutil
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from autograder.classroom.batch.engine import EngineError, secret_seed, was_stopped
from autograder.classroom.exercise_versions import version_of_assignment
from autograder.classroom.hand_in import HandedIn, read_hand_in
from autograder.host.records import GRADER_VERSION, SubmissionRecord
from autograder.host.sandbox import Sandbox, SandboxError, open_sandbox

if TYPE_CHECKING:
    from distributed import Client

CONNECT_S = 10.0
START_S = 120.0  # long, since each worker imports torch, and the machine may be busy
_QUIET = {"silence_logs": logging.ERROR}


@dataclass(frozen=True)
class Order:
    """One hand-in to grade, as plain text, so that only text is unpickled."""

    assignment: str
    student: str
    path: str
    sha256: str
    notes: tuple[str, ...]
    seed_file: str
    version: str  # of the grader that sends the order
    exercises: str  # what the marks of its exercises depend on there, as a digest
    level: str  # "auto", or "1" to "5"
    trust: bool
    device: str = "cpu"
    measured: bool = False


@dataclass(frozen=True)
class DaskEngine:
    """Grade on the workers of `client`, which share the submitted folder and `seed_file` under the same paths."""

    client: "Client"
    seed_file: Path
    level: str = "auto"
    trust: bool = False
    device: str = "cpu"
    measured: bool = False

    def require_ready(self, folder: Path) -> None:
        """Raise `EngineError`, before grading starts, unless every worker can grade the hand-ins in `folder`."""
        if not self.client.scheduler_info(n_workers=-1)["workers"]:
            raise EngineError("The Dask cluster has no worker; start one with: dask worker SCHEDULER --nthreads 1.")
        asked = (str(folder), str(self.seed_file), GRADER_VERSION, self.level, self.trust, self.device, self.measured)
        for address, sentence in sorted(self.client.run(readiness_problem, *asked).items()):
            if sentence:
                raise EngineError(f"The Dask worker {address} {sentence}")

    def grade(
        self, hand_ins: Sequence[HandedIn], *, seed: int
    ) -> Generator[tuple[HandedIn, SubmissionRecord], None, None]:
        """Grade `hand_ins`; see `Engine`. `seed` is the number in the shared file, and is not sent."""
        from distributed import as_completed

        futures = {self.client.submit(grade_order, self._order(one), pure=False, retries=0): one for one in hand_ins}
        try:
            stopped: list[HandedIn] = []
            for future in as_completed(list(futures), loop=self.client.loop):
                hand_in, record = futures[future], _record(futures[future], future)
                if len(futures) > 1 and was_stopped(record):
                    stopped.append(hand_in)
                else:
                    yield hand_in, record
            for hand_in in stopped:  # alone in the cluster
                future = self.client.submit(grade_order, self._order(hand_in), pure=False, retries=0)
                futures[future] = hand_in
                next(iter(as_completed([future], loop=self.client.loop)))
                yield hand_in, _record(hand_in, future)
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
            exercises=version_of_assignment(one.assignment),
            level=self.level,
            trust=self.trust,
            device=self.device,
            measured=self.measured,
        )


def _record(hand_in: HandedIn, future: Any) -> SubmissionRecord:
    if future.status != "finished":
        error = future.exception()
        return hand_in.not_graded(f"A fault of the grader's cluster: {type(error).__name__}: {error}")
    return SubmissionRecord.from_json(future.result())


def grade_order(order: Order) -> str:
    """Grade one hand-in on this Dask worker and return its record as JSON."""
    # checked again, since this worker may have joined after the start
    chosen = (order.level, order.trust, order.device, order.measured)
    sentence = readiness_problem(order.path, order.seed_file, order.version, *chosen)
    hand_in = replace(read_hand_in(order.assignment, order.student, Path(order.path)), notes=order.notes)
    if sentence:
        return hand_in.not_graded(f"The machine {platform.node()} {sentence}").to_json()
    if version_of_assignment(order.assignment) != order.exercises:
        told = f"The machine {platform.node()} has other exercises, or another grader or torch; install the same there."
        return hand_in.not_graded(told).to_json()
    if hand_in.sha256 != order.sha256:
        return hand_in.not_graded(f"{order.path} reads differently on the machine {platform.node()}.").to_json()
    sandbox = _sandbox(*chosen)
    return hand_in.grade(sandbox=sandbox, seed=secret_seed(Path(order.seed_file))).to_json()


def readiness_problem(
    path: str, seed_file: str, version: str, level: str, trust: bool, device: str = "cpu", measured: bool = False
) -> str:
    """Return a sentence about why this Dask worker cannot grade the hand-ins at `path`; empty if it can."""
    if version != GRADER_VERSION:
        return f"runs version {GRADER_VERSION} of the grader instead of {version}; install the same version there."
    for needed in (path, seed_file):
        if not os.path.lexists(needed):
            return f"does not see {needed}; share that folder with it under the same name."
    try:
        _sandbox(level, trust, device, measured)
    except SandboxError as error:
        return f"has no sandbox: {error}"
    return ""


@functools.cache
def _sandbox(level: str, trust: bool, device: str, measured: bool) -> Sandbox:
    return open_sandbox("auto" if level == "auto" else int(level), trust=trust, device=device, measured=measured)


@contextmanager
def connected(address: str) -> Iterator["Client"]:
    """Yield a client of the running scheduler at `address`, such as `tcp://10.0.0.1:8786`."""
    distributed = _distributed()
    try:
        client = distributed.Client(address, timeout=CONNECT_S, set_as_default=False)
    except (OSError, ValueError, RuntimeError) as error:
        raise EngineError(f"No Dask scheduler answers at {address}: {error}") from error
    with client:
        yield client


@contextmanager
def local_cluster(count: int | None = None) -> Iterator["Client"]:
    """Yield a client of a cluster on this machine: `count` workers, by default one per GPU, or one per core."""
    distributed = _distributed()
    devices = sorted(path.name.removeprefix("nvidia") for path in Path("/dev").glob("nvidia[0-9]*"))
    count = count or len(devices) or len(os.sched_getaffinity(0))
    environments = [{"CUDA_VISIBLE_DEVICES": devices[i % len(devices)]} if devices else {} for i in range(count)]
    security = distributed.Security.temporary()
    secured = {"security": security, "protocol": "tls", "dashboard": False}
    workers = {
        i: {"cls": distributed.Nanny, "options": {**secured, "nthreads": 1, "env": environment, **_QUIET}}
        for i, environment in enumerate(environments)
    }
    scheduler = {"cls": distributed.Scheduler, "options": {**secured, "host": "127.0.0.1", "port": 0}}
    cluster = distributed.SpecCluster(workers=workers, scheduler=scheduler, security=security, **_QUIET)
    with cluster, distributed.Client(cluster, set_as_default=False) as client:
        client.wait_for_workers(count, timeout=START_S)
        yield client


@contextmanager
def slurm_cluster(count: int) -> Iterator["Client"]:
    """Yield a client of `count` workers that Slurm starts, each with its own core and GPU.

    The nodes must share the working folder, because it holds the keys of the encrypted connections during the run.
    """
    distributed = _distributed()
    if shutil.which("sbatch") is None:
        raise EngineError("The engine slurm needs the command sbatch; run this on a node that submits to Slurm.")
    with slurm_jobs(distributed.Security.temporary()) as cluster:
        cluster.scale(jobs=count)
        with distributed.Client(cluster, set_as_default=False) as client:
            client.wait_for_workers(1)  # Slurm's queue may be long; the other workers join when they start
            yield client


def slurm_jobs(security: Any) -> Any:
    """Return the cluster, without workers yet; `.job_script()` shows the script for Slurm."""
    _distributed()
    from dask import config
    from dask_jobqueue.slurm import SLURMCluster

    defaults = {"cores": 1, "processes": 1, "memory": "16 GB", "job-extra-directives": ["--gres=gpu:1"]}
    chosen: Mapping[str, Any] = {
        name.replace("-", "_"): config.get(f"jobqueue.slurm.{name}") or value for name, value in defaults.items()
    }
    return SLURMCluster(
        **chosen,
        security=security,
        protocol="tls",
        shared_temp_directory=str(Path.cwd()),
        scheduler_options={"dashboard": False},
    )


def _distributed() -> Any:
    try:
        import distributed
    except ImportError:
        remedy = "install it with: pip install -c constraints.txt -e '.[cluster]'"
        raise EngineError(f"The engine dask needs Dask, which is not installed; {remedy}.") from None
    return distributed
