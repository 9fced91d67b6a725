"""The device nodes of a worker with a GPU, from a folder that looks like /dev; nothing here has run on CUDA."""

from pathlib import Path

import pytest

from autograder.host.sandbox import SandboxError, bubblewrap, confined, open_sandbox, seccomp, selection
from autograder.host.sandbox.bubblewrap import Bubblewrap
from autograder.host.sandbox.compute_device import CPU, Device, find_device
from autograder.host.sandbox.confined import Confined
from autograder.host.sandbox.levels import Level
from autograder.host.sandbox.resource_limits import Limits
from tests import skips
from tests.autograder.host.sandbox.conftest import opened

GPU_1 = Device("cuda:1", ("/dev/nvidia1", "/dev/nvidiactl", "/dev/nvidia-uvm"), ("/sys",))


@pytest.fixture
def two_gpus(tmp_path: Path) -> Path:
    for node in ("nvidia0", "nvidia1", "nvidiactl", "nvidia-uvm", "nvidia-caps", "nvidia-modeset", "null"):
        (tmp_path / "dev").mkdir(exist_ok=True)
        (tmp_path / "dev" / node).touch()
    for place in ("sys", "usr/local/nvidia/lib64", "usr/lib/wsl"):
        (tmp_path / place).mkdir(parents=True)
    return tmp_path


def test_a_worker_gets_the_assigned_gpu_and_the_shared_nodes_only(two_gpus: Path) -> None:
    device = find_device("cuda:1", root=two_gpus)

    assert device.nodes == ("/dev/nvidia1", "/dev/nvidiactl", "/dev/nvidia-uvm")
    assert device.readable == ("/usr/local/nvidia", "/sys")  # every worker sees /usr/lib
    assert "no other GPU" in device.notes[0]


def test_the_first_gpu_is_taken_where_none_is_named(two_gpus: Path) -> None:
    (two_gpus / "dev" / "nvidia0").unlink()

    assert find_device("cuda", root=two_gpus).nodes[0] == "/dev/nvidia1"


def test_a_cpu_needs_nothing() -> None:
    assert find_device("cpu") is CPU
    assert (CPU.mounts, CPU.notes, CPU.cuda) == ([], (), False)


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("cuda:2", r"cuda:2 is not on this machine: /dev/nvidia2 is missing \(GPUs: cuda:0, cuda:1\)"),
        ("gpu", "There is no device 'gpu'; it is cpu, cuda or cuda:N"),
        ("cuda:../sda", "There is no device"),
    ],
)
def test_a_missing_device_is_named(two_gpus: Path, name: str, sentence: str) -> None:
    with pytest.raises(SandboxError, match=sentence):
        find_device(name, root=two_gpus)


def test_a_missing_gpu_is_reported_before_anything_starts() -> None:
    if list(Path("/dev").glob("nvidia[0-9]*")):
        pytest.skip(skips.NO_GPU)

    with pytest.raises(SandboxError, match=r"The device cuda is not on this machine: .* \(GPUs: none\)"):
        open_sandbox(device="cuda")


def test_bubblewrap_binds_devices_after_its_own_dev_and_before_it_is_closed() -> None:
    options = list(bubblewrap._files(GPU_1.mounts, Limits()))

    dev, closed = options.index("--dev"), options.index("--remount-ro")
    bound = [place for place, option in enumerate(options) if option == "--dev-bind"]
    assert [options[place + 1] for place in bound] == list(GPU_1.nodes)
    assert all(dev < place < closed for place in bound)
    assert options[options.index("/sys") - 1] == "--ro-bind"


@pytest.mark.skipif(confined.landlock_version() < 1, reason=f"{skips.KERNEL}: Landlock")
def test_landlock_opens_the_same_devices(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(confined, "_refuse_the_wrong_user", lambda level: None)
    sandbox = Confined(Level.CONFINED_SAME_USER, GPU_1)
    (tmp_path / "private").mkdir()

    files = sandbox._orders("", Limits(), (), tmp_path / "private", None).files

    assert files is not None
    assert set(GPU_1.nodes) <= set(files.devices)
    assert {"/sys", "/proc/driver/nvidia"} <= set(files.readable)
    assert "/dev/nvidia0" not in {*files.devices, *files.readable}
    assert "/sys" not in files.writable


@pytest.mark.parametrize(
    ("kernel", "failure"),
    [
        ("assert len(open('/dev/zero', 'rb').read(9)) == 9", ""),
        (
            "raise RuntimeError('CUDA error 304')",
            "At level 2 the device cuda:0 runs no kernel (RuntimeError: CUDA error 304).",
        ),
    ],
    ids=["it runs", "it fails"],
)
def test_a_level_is_offered_only_if_a_kernel_runs_there(
    kernel: str, failure: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened(2)
    monkeypatch.setattr(selection, "KERNEL", kernel)

    attempt = selection._attempt.__wrapped__(Level.ISOLATED, Device("cuda:0", ("/dev/zero",)))

    assert attempt.failure == failure
    assert bool(attempt.sandbox) == (failure == "")


def test_the_driver_gets_the_memory_files_that_it_needs() -> None:
    rules = Bubblewrap(None, GPU_1)._rules()

    assert rules == seccomp.program(countable_memory_only=False)
    assert rules != Bubblewrap(None)._rules()
