"""The choice of a device: `auto` takes a GPU that costs no isolation, and every command takes what was chosen."""

import argparse
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from autograder import course_settings as settings
from autograder.classroom import cli, sandbox_options
from autograder.classroom.nbgrader import outside_kernel
from autograder.classroom.nbgrader.outside_kernel import GradeOutsideKernel, NotGradedError
from autograder.course_settings import Settings
from autograder.exercises import find
from autograder.host.judge import judge
from autograder.host.sandbox import AUTO, SandboxError, open_sandbox, selection
from autograder.host.sandbox.compute_device import Device
from autograder.host.sandbox.plain import Plain
from autograder.practice import visible_checks
from autograder.practice.errors import WrongSettingsError
from tests.autograder.host.sandbox.test_requested_devices import NO_GPU_HERE

GPU = Device("cuda", ("/dev/nvidia0",))
USELESS = Device("cuda", ("/dev/zero",), visible="0")  # a node that opens, in a container whose torch has no CUDA
Opened = Callable[[int | None, int], None]


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> Opened:
    """Let sandboxes open at these levels, with a GPU (None: it runs no kernel) and without."""

    def let(with_gpu: int | None, without: int) -> None:
        def fake(level: Any, trust: bool, device: str) -> Plain:
            if device != "cpu" and with_gpu is None:
                raise SandboxError("The device cuda runs no kernel.")
            sandbox = Plain(GPU if device != "cpu" else Device())
            sandbox.level = without if device == "cpu" else with_gpu or 0
            return sandbox

        monkeypatch.setattr(selection, "find_device", lambda name: GPU)
        monkeypatch.setattr(selection, "_opened", fake)

    return let


@pytest.mark.parametrize(("with_gpu", "taken"), [(1, True), (2, True), (3, False), (None, False)])
def test_auto_takes_a_gpu_unless_it_costs_isolation(opened: Opened, with_gpu: int | None, taken: bool) -> None:
    opened(with_gpu, 2)
    sandbox = open_sandbox(device=AUTO)

    assert (sandbox.has_cuda, sandbox.measures) == (taken, taken)
    assert any("answers compute on the CPU" in note for note in sandbox.notes) != taken


@NO_GPU_HERE
def test_auto_computes_on_the_cpu_where_nothing_isolates_and_the_gpu_runs_no_kernel(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(selection, "PROBED", ())
    monkeypatch.setattr(selection, "find_device", lambda name: Device() if name == "cpu" else USELESS)
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "0")
    monkeypatch.setenv("CUDA_DEVICE_ORDER", "PCI_BUS_ID")

    sandbox = open_sandbox(trust=True, device=AUTO)
    assert (sandbox.level, sandbox.has_cuda) == (5, False)
    assert "answers compute on the CPU: At level 5 the device cuda runs no kernel" in sandbox.notes[-1]

    record = judge(find("04_read_a_graph"), {"answer": "def read_graph(rows):\n    return {}"}, sandbox=sandbox, seed=1)
    assert record.status == "graded", record.message


def test_auto_is_the_usual_sandbox_where_there_is_no_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> Device:
        raise SandboxError("none")

    usual = open_sandbox()
    monkeypatch.setattr(selection, "find_device", lambda name: missing(name) if name == "cuda" else Device())
    assert open_sandbox(device=AUTO) is usual


def test_a_cpu_measures_only_if_it_is_asked_to_and_only_for_who_asked() -> None:
    usual, asked = open_sandbox(), open_sandbox(measured=True)

    assert (usual.measures, asked.measures, open_sandbox().measures) == (False, True, False)
    assert asked.zygotes is usual.zygotes


@pytest.fixture
def course(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], Path]:
    """Write the course's settings, and go to its folder."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / settings.COURSE_FILE).touch()

    def write(text: str) -> Path:
        path = tmp_path / settings.FILE
        path.write_text(text)
        return path

    return write


@pytest.mark.parametrize(
    ("arguments", "chosen"),
    [
        ([], Settings("cuda:1", True)),
        (["--device", "cpu"], Settings("cpu", True)),
        (["--no-measured", "--device", "auto"], Settings("auto", False)),
    ],
)
def test_options_come_before_the_file(
    course: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch, arguments: list[str], chosen: Settings
) -> None:
    course('device = "cuda:1"\nmeasured = true\n')
    parser = argparse.ArgumentParser()
    sandbox_options.add_sandbox(parser)
    asked: dict[str, Any] = {}
    monkeypatch.setattr(sandbox_options, "open_sandbox", lambda level, **how: asked.update(how))

    sandbox_options.open_chosen(parser.parse_args(arguments))
    assert (asked["device"], asked["measured"]) == (chosen.device, chosen.measured)


def test_a_wrong_setting_ends_a_command_in_one_sentence(
    course: Callable[[str], Path], capsys: pytest.CaptureFixture[str]
) -> None:
    path = course('device = "gpu"')
    status = cli.main(["check", "04_read_a_graph", str(path)])

    said = capsys.readouterr().err
    assert (status, said.count("\n")) == (2, 1)
    assert "device is 'gpu'; expected auto, cpu, cuda or cuda:N" in said


def test_check_in_a_notebook_takes_the_setting_and_says_what_is_wrong_with_it(
    course: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[dict[str, Any]] = []
    monkeypatch.setattr(visible_checks, "open_sandbox", lambda **how: asked.append(how))
    course('device = "cpu"\nmeasured = true\n')
    visible_checks._sandbox.__wrapped__()
    assert asked == [{"trust": True, "device": "cpu", "measured": True}]

    course("device = 7")
    with pytest.raises(WrongSettingsError, match="device is 7"):
        visible_checks._sandbox.__wrapped__()


def test_nbgrader_takes_the_setting_unless_its_own_says_otherwise(
    course: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    path = course('device = "cuda"\nmeasured = true\n')
    grader = GradeOutsideKernel(settings=str(path))

    assert grader._chosen() == Settings("cuda", True)
    assert GradeOutsideKernel(settings=str(path), device="cpu", measured=False)._chosen() == Settings("cpu", False)
    with pytest.raises(NotGradedError, match="device is 'gpu'; expected auto"):
        GradeOutsideKernel(device="gpu")._chosen()
    course("measured = 2")
    with pytest.raises(NotGradedError, match="measured is 2; expected true or false"):
        grader._chosen()

    asked: list[Any] = []
    monkeypatch.setattr(outside_kernel, "open_sandbox", lambda *level, **how: asked.append(SimpleNamespace(**how)))
    outside_kernel._open_once.__wrapped__("auto", False, Settings("cuda:2", True))
    assert (asked[0].device, asked[0].measured) == ("cuda:2", True)
