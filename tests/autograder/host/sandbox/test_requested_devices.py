"""A requested device reaches workers, clock and record, or is refused before grading; with stand-ins on a CPU.

Nothing here has run on CUDA.
"""

import os
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from autograder.classroom import batch_command, sandbox_options
from autograder.classroom.batch import LocalEngine
from autograder.classroom.cli import main
from autograder.exercises import find
from autograder.host.clock import contest as contests
from autograder.host.judge import judge
from autograder.host.sandbox import Limits, Sandbox, SandboxError, WorkerProcess, open_sandbox
from autograder.host.sandbox.compute_device import Device, find_device, is_device_name, set_visible_device
from autograder.host.sandbox.sandbox import WORKER, WORKER_WITH_GPU
from tests import skips
from tests.autograder.host.sandbox.conftest import opened

GPU_1 = Device("cuda:1", ("/dev/nvidia1", "/dev/nvidiactl"), visible="GPU-b1")
NO_GPU_HERE = pytest.mark.skipif(bool(list(Path("/dev").glob("nvidia[0-9]*"))), reason=skips.NO_GPU)


class Assigned(Sandbox):
    """The strongest level of this machine, told that its workers have a GPU."""

    def __init__(self) -> None:
        self.inner, self._device, self.programs = opened("auto"), GPU_1, []
        self.level = self.inner.level

    def _start(self, program: str, limits: Limits, masked: Sequence[str] = ()) -> WorkerProcess:
        self.programs.append(program)
        return self.inner._start(program, limits, masked)


def test_names_of_devices_have_a_form() -> None:
    assert [name for name in ("cpu", "cuda", "cuda:3", "cuda:x", "gpu", "") if is_device_name(name)] == [
        "cpu",
        "cuda",
        "cuda:3",
    ]


def test_the_first_gpu_is_the_first_that_this_process_may_use(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "dev").mkdir()
    for number in (0, 1):
        (tmp_path / "dev" / f"nvidia{number}").touch()
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "1,0")

    assert find_device("cuda", root=tmp_path).nodes[0] == "/dev/nvidia1"
    assert find_device("cuda:0", root=tmp_path).nodes[0] == "/dev/nvidia0"


def test_the_host_sees_the_gpu_of_its_workers_and_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "0,1")
    monkeypatch.setenv("CUDA_DEVICE_ORDER", "FASTEST_FIRST")

    set_visible_device(GPU_1)

    assert (os.environ["CUDA_VISIBLE_DEVICES"], os.environ["CUDA_DEVICE_ORDER"]) == ("GPU-b1", "PCI_BUS_ID")


def test_level_5_has_the_device_too() -> None:
    assert not open_sandbox(5, trust=True).has_cuda
    if not torch.cuda.is_available():
        with pytest.raises(SandboxError, match="cuda is not on this machine"):
            open_sandbox(5, trust=True, device="cuda")


@NO_GPU_HERE
def test_a_worker_reports_that_it_sees_no_gpu_and_nobody_loses_points() -> None:
    sandbox = Assigned()
    exercise = find("04_read_a_graph", hidden=True)

    record = judge(exercise, {"answer": "def read_graph(rows):\n    return {}"}, sandbox=sandbox, seed=1)

    assert (record.status, record.max_points) == ("grader_error", 0)
    assert record.message == "A worker does not see the GPU that was assigned to it."
    assert sandbox.programs == [WORKER_WITH_GPU]


def test_a_worker_without_a_gpu_is_not_asked_for_one() -> None:
    sandbox = Assigned()
    sandbox._device = Device()

    with sandbox.start(limits=Limits(wall_s=20)):
        assert sandbox.programs == [WORKER]


@NO_GPU_HERE
@pytest.mark.parametrize(
    ("arguments", "status", "words"),
    [
        (["check", "04_read_a_graph", __file__, "--device", "cuda"], 4, "The device cuda is not on this machine"),
        (["check", "04_read_a_graph", __file__, "--device", "cuda:7"], 4, "/dev/nvidia7 is missing (GPUs: none)"),
    ],
)
def test_a_missing_gpu_is_one_sentence_before_anything_is_graded(
    arguments: list[str], status: int, words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(arguments) == status
    printed = capsys.readouterr()
    assert words in printed.err
    assert (printed.out, printed.err.count("\n")) == ("", 1)


@pytest.mark.parametrize("command", [["batch"], ["check", "04_read_a_graph", "x.py"], ["grade", "x.ipynb"]])
def test_an_unknown_device_name_is_wrong_usage(command: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stopped:
        main([*command, "--device", "gpu"])
    assert stopped.value.code == 2
    assert "'gpu' given, auto, cpu, cuda or cuda:N expected" in capsys.readouterr().err


def test_a_batch_opens_its_sandbox_with_the_device(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: dict[str, Any] = {}
    monkeypatch.setattr(sandbox_options, "open_sandbox", lambda level, **how: asked.update(how))
    options = SimpleNamespace(
        engine="local", sandbox="auto", i_trust_this_code=False, slots=2, device="cuda:1", measured=None
    )

    with batch_command._engine(options, None) as engine:  # type: ignore[arg-type]
        assert engine == LocalEngine(None, 2)  # type: ignore[arg-type]
    assert asked == {"trust": False, "device": "cuda:1", "measured": False}


def test_problems_of_a_gpu_are_read_before_a_contest_and_reach_the_verdict(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    said: list[Any] = []
    busy = SimpleNamespace(problems=("2 other processes compute on it",))
    monkeypatch.setattr(contests, "lasting_problems", lambda stay_busy: (said.append("asked"), busy.problems)[1])
    gpu = SimpleNamespace(stay_busy=None, synchronize=lambda: said.append("idle again"))
    monkeypatch.setattr(contests, "_record", lambda *about: "record")

    assessed = SimpleNamespace(verdict="environment", passing=None, trial=None, attempts=1, flags=())

    def assess(*about: Any) -> SimpleNamespace:
        said.append(about[3]())
        return assessed

    monkeypatch.setattr(contests, "assess", assess)
    thresholds = SimpleNamespace(passing=1.2, full=1.5)
    for device in ("cpu", "cuda"):
        contest = SimpleNamespace(thresholds=thresholds, device=device, control=None, gpu=gpu)
        assert contests.measure(contest) == ("record", assessed)  # type: ignore[arg-type, comparison-overlap]

    assert said == [(), "asked", "idle again", busy.problems]
