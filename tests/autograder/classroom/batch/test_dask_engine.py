"""Grading on Dask workers: records as on one machine, a worker's death costs nothing, trouble is said beforehand."""

import json
import os
import signal
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import dask
import pytest
from distributed import Security
from distributed.utils import get_mp_context

from autograder.classroom.batch import EngineError, Journal, fingerprint, grade_class, records_in, secret_seed
from autograder.classroom.batch.dask_engine import DaskEngine, connected, local_cluster, slurm_cluster, slurm_jobs
from autograder.classroom.hand_in import HandedIn, read_hand_in
from autograder.exercises.quality.controls import controls

EXERCISE, ASSIGNMENT = "04_read_a_graph", "04_fx_capture"
REFERENCE = next(c.answer for c in controls(EXERCISE) if c.name == "reference")
SLOW = "import time\ntime.sleep(2)\n" + REFERENCE


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DaskEngine]:
    seed_file = tmp_path_factory.mktemp("course") / "secret_seed"
    secret_seed(seed_file)
    # workers are forked from a process that has imported torch, where each would import it, the restarted one too
    with dask.config.set({"distributed.worker.multiprocessing-method": "forkserver"}):
        get_mp_context().set_forkserver_preload(["autograder.classroom.batch.dask_engine", "distributed"])
        with local_cluster(2) as client:
            yield DaskEngine(client, seed_file)


def hand_in(folder: Path, student: str, answer: str) -> HandedIn:
    metadata = {"schema_version": 3, "grade_id": EXERCISE, "grade": False, "solution": True, "locked": False}
    cell = {"cell_type": "code", "id": "a", "metadata": {"nbgrader": metadata}, "source": answer, "outputs": []}
    notebook = {"cells": [cell | {"execution_count": None}], "metadata": {}, "nbformat": 4, "nbformat_minor": 5}
    path = folder / student / ASSIGNMENT / f"{ASSIGNMENT}.ipynb"
    path.parent.mkdir(parents=True)
    path.write_text(json.dumps(notebook))
    return read_hand_in(ASSIGNMENT, student, path)


def grade(engine: DaskEngine, hand_ins: list[HandedIn], journal: Path) -> dict[str, float]:
    with Journal(journal) as opened:
        done = grade_class(hand_ins, opened, engine=engine, seed=secret_seed(engine.seed_file))
    assert not done.unfinished
    return {record.student: record.points for record in done.records}


def test_records_are_those_of_this_machine_and_are_written_down_once(engine: DaskEngine, tmp_path: Path) -> None:
    hand_ins = [hand_in(tmp_path, "right", REFERENCE), hand_in(tmp_path, "wrong", "def read_graph(nodes): return 0")]
    (tmp_path / "broken" / ASSIGNMENT).mkdir(parents=True)
    path = tmp_path / "broken" / ASSIGNMENT / f"{ASSIGNMENT}.ipynb"
    path.write_text("{")
    broken = read_hand_in(ASSIGNMENT, "broken", path)
    engine.require_ready(tmp_path)
    assert grade(engine, [*hand_ins, broken], tmp_path / "journal.jsonl") == {"right": 6, "wrong": 0, "broken": 0}
    assert grade(engine, [*hand_ins, broken], tmp_path / "journal.jsonl") == {"right": 6, "wrong": 0, "broken": 0}
    assert sorted(r.student for r in records_in(tmp_path / "journal.jsonl")) == ["broken", "right", "wrong"]


def test_a_worker_that_is_killed_half_way_costs_nothing(engine: DaskEngine, tmp_path: Path) -> None:
    hand_ins = [hand_in(tmp_path, "slow", SLOW)]  # the other worker takes it over, which has its sandbox already
    workers = engine.client.run(os.getpid)
    killed: list[int] = []

    def kill_a_busy_worker() -> None:
        until = time.monotonic() + 60
        while not killed and time.monotonic() < until:
            busy = [address for address, keys in engine.client.processing().items() if keys]
            if busy:
                time.sleep(0.5)
                killed.append(workers[busy[0]])
                os.kill(killed[0], signal.SIGKILL)

    killer = threading.Thread(target=kill_a_busy_worker)
    killer.start()
    marks = grade(engine, hand_ins, tmp_path / "journal.jsonl")
    killer.join()
    assert killed
    assert marks == {"slow": 6}
    assert len(list(records_in(tmp_path / "journal.jsonl"))) == 1


def test_a_worker_that_does_not_see_the_folder_is_told_before_grading(engine: DaskEngine) -> None:
    with pytest.raises(EngineError, match="does not see /nowhere; share that folder"):
        engine.require_ready(Path("/nowhere"))


def test_the_seed_stays_where_it_is(engine: DaskEngine, tmp_path: Path) -> None:
    order = engine._order(hand_in(tmp_path, "right", REFERENCE))
    seed = secret_seed(engine.seed_file)
    assert str(seed) not in repr(order)
    assert fingerprint(seed) not in repr(order)


def test_a_scheduler_that_does_not_answer_is_said_in_one_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("autograder.classroom.batch.dask_engine.CONNECT_S", 0.5)
    with (
        pytest.raises(EngineError, match=r"No Dask scheduler answers at tcp://127\.0\.0\.1:1"),
        connected("tcp://127.0.0.1:1"),
    ):
        pass


def test_slurm_is_asked_for_a_core_and_a_gpu_for_each_worker(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    with slurm_jobs(Security.temporary()) as cluster:
        script = cluster.job_script()
    assert "#SBATCH --gres=gpu:1" in script
    assert "#SBATCH --cpus-per-task=1" in script
    assert "--nthreads 1" in script
    assert "--tls-key" in script


def test_without_slurm_its_engine_is_refused_in_one_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(EngineError, match="needs the command sbatch"), slurm_cluster(1):
        pass
