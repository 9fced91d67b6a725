"""Connect to Dask workers to grade on: those of a running scheduler, of this machine, or of a Slurm cluster.

There is one worker for each GPU, or for each core where there is no GPU, each with a single thread. Clusters that are
started here encrypt their connections with keys that nobody else has, since anyone who reaches a worker can run code.
Further settings of Slurm's jobs (partition, account, time) are read from `~/.config/dask/jobqueue.yaml`; see
dask-jobqueue.
"""

import logging
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from autograder.classroom.batch.engine import EngineError

if TYPE_CHECKING:
    from distributed import Client

CONNECT_S = 10.0
START_S = 120.0  # long, since a worker imports torch, on a busy machine maybe
_QUIET = {"silence_logs": logging.ERROR}


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
    """Yield a client of a cluster on this machine: one worker a GPU, or `count`, by default one a core.

    Only this process has the keys of its encrypted connections, since anyone who reaches a worker can run code.
    """
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
    """Yield a client of `count` workers that Slurm starts, each with a core and a GPU of its own.

    The nodes must share the working folder: the keys of the encrypted connections lie there while the cluster runs.
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
    """Return the cluster, without workers yet; `.job_script()` shows the script that Slurm would be given."""
    _distributed()
    from dask import config
    from dask_jobqueue.slurm import SLURMCluster

    defaults = {"cores": 1, "processes": 1, "memory": "16 GB", "job-extra-directives": ["--gres=gpu:1"]}
    chosen: dict[str, Any] = {
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
