"""The device nodes of a worker with a GPU, from a folder that looks like /dev; nothing here has run on CUDA."""

import copy
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from autograder.host.sandbox import SandboxError, bubblewrap, confined, open_sandbox, seccomp, selection
from autograder.host.sandbox.bubblewrap import Bubblewrap
from autograder.host.sandbox.compute_device import CPU, Device, find_device, find_driver
from autograder.host.sandbox.confined import Confined
from autograder.host.sandbox.interpreter import rlimits, zygote_environment
from autograder.host.sandbox.levels import Level
from autograder.host.sandbox.resource_limits import Limits
from tests import skips
from tests.architecture.source_tree import ROOT
from tests.autograder.host.sandbox.conftest import OWN_CONFINED, opened

GPU_1 = Device("cuda:1", ("/dev/nvidia1", "/dev/nvidiactl", "/dev/nvidia-uvm"), ("/sys",), visible="GPU-b1")
UUIDS = {0: "GPU-a0", 1: "GPU-b1", 3: "GPU-c3"}
"""UUIDs of GPUs by their numbers in /dev. The bus order is another: 3, 0, 1."""
BUSES = {0: "0000:41:00.0", 1: "0000:81:00.0", 3: "0000:01:00.0"}


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


def machine(root: Path, *nodes: int, told: bool = True) -> Path:
    """Make a folder like the root of a machine with these GPUs."""
    for node in nodes:
        (root / "dev").mkdir(exist_ok=True)
        (root / "dev" / f"nvidia{node}").touch()
        if told:
            about = root / "proc/driver/nvidia/gpus" / BUSES[node]
            about.mkdir(parents=True)
            (about / "information").write_text(
                f"Model: \t\t NVIDIA H200\nGPU UUID: \t {UUIDS[node]}\nBus Location: \t {BUSES[node]}\n"
                f"Device Minor: \t {node}\n"
            )
    return root


@pytest.mark.parametrize(
    ("nodes", "allowed", "asked", "node", "visible"),
    [
        ((3,), None, "cuda", 3, "GPU-c3"),  # a container with one GPU of several
        ((3,), "0", "cuda", 3, "GPU-c3"),  # Slurm: number 0 of the GPUs that open
        ((0, 1, 3), "0", "cuda", 3, "GPU-c3"),  # numbers follow the bus, not /dev
        ((0, 1, 3), "2,0", "cuda", 1, "GPU-b1"),
        ((0, 1, 3), "GPU-a", "cuda", 0, "GPU-a0"),  # the beginning of a UUID is enough for CUDA
        ((0, 1, 3), "GPU-b1,GPU-a0", "cuda", 1, "GPU-b1"),
        ((0, 1, 3), None, "cuda:1", 1, "GPU-b1"),
    ],
)
def test_the_gpu_is_the_one_that_cuda_would_take_and_is_named_by_its_uuid(
    nodes: tuple[int, ...],
    allowed: str | None,
    asked: str,
    node: int,
    visible: str,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    if allowed is not None:
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", allowed)
    device = find_device(asked, root=machine(tmp_path, *nodes))

    assert (device.nodes[0], device.visible) == (f"/dev/nvidia{node}", visible)
    for alone in (True, False):
        assert device.variables(alone=alone)["CUDA_VISIBLE_DEVICES"] == visible


def test_without_a_uuid_a_gpu_is_counted_among_those_that_open(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    device = find_device("cuda:3", root=machine(tmp_path, 1, 3, told=False))

    assert device.visible == "1"
    assert device.variables()["CUDA_VISIBLE_DEVICES"] == "0"  # this worker opens no other
    assert device.variables(alone=False)["CUDA_VISIBLE_DEVICES"] == "1"  # at level 5 it opens both


@pytest.mark.parametrize(
    ("allowed", "sentence"),
    [
        ("", "CUDA_VISIBLE_DEVICES is '', which names none of the 1 GPUs"),
        ("1", "names none of the 1 GPUs"),
        ("GPU-zz", "names none of the 1 GPUs"),
        ("MIG-41", r"names a part of a GPU \(MIG-41\)"),
    ],
)
def test_variables_that_allow_no_gpu_are_refused_in_a_sentence(
    allowed: str, sentence: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", allowed)
    with pytest.raises(SandboxError, match=sentence):
        find_device("cuda", root=machine(tmp_path, 3))


def test_a_gpu_that_a_scheduler_closed_is_not_counted(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    root, right = machine(tmp_path, 0, 1), os.open

    def refusing(path: Path, flags: int) -> int:
        if path.name == "nvidia0":
            raise PermissionError(1, "Operation not permitted")
        return right(path, flags)

    monkeypatch.setattr("os.open", refusing)
    assert find_device("cuda", root=root).nodes[0] == "/dev/nvidia1"
    with pytest.raises(SandboxError, match=r"may not open /dev/nvidia0 \(GPUs: cuda:1\)"):
        find_device("cuda:0", root=root)


LISTED = """2 libs found in cache `/etc/ld.so.cache'
\tlibcuda.so.1 (libc6) => /usr/lib/i386-linux-gnu/libcuda.so.1
\tlibcuda.so.1 (libc6,x86-64) => /usr/lib/x86_64-linux-gnu/libcuda.so.1
"""


def test_the_driver_is_found_by_the_loaders_cache_by_a_variable_or_in_a_known_place(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.delenv("LD_LIBRARY_PATH", raising=False)
    assert find_driver(LISTED, root=tmp_path) == ("/usr/lib/x86_64-linux-gnu", True)
    assert find_driver("", root=tmp_path) == ("", True)
    for folder in ("usr/local/nvidia/lib64", "opt/odd"):
        (tmp_path / folder).mkdir(parents=True)
        (tmp_path / folder / "libcuda.so.1").touch()
    assert find_driver("", root=tmp_path) == ("/usr/local/nvidia/lib64", False)
    monkeypatch.setenv("LD_LIBRARY_PATH", "/nowhere:/opt/odd")
    assert find_driver("", root=tmp_path) == ("/opt/odd", False)
    (tmp_path / "opt/odd/secret").touch()
    (tmp_path / "opt/odd/libnvidia-ptxjitcompiler.so.1").touch()

    found = find_device("cuda", root=machine(tmp_path, 3))
    assert found.readable[-2:] == ("/opt/odd/libcuda.so.1", "/opt/odd/libnvidia-ptxjitcompiler.so.1")
    assert found.variables()["LD_LIBRARY_PATH"] == found.variables()["TRITON_LIBCUDA_PATH"] == "/opt/odd"
    assert zygote_environment("/", found)["LD_LIBRARY_PATH"] == "/opt/odd"  # the loader reads it once


WITH_DRIVER = Device("cuda", ("/dev/zero",), visible="GPU-b1", libraries="/usr/lib/gpu-driver")
LOOK_FOR_DRIVER = """
import os
from triton.backends.nvidia import driver
print(driver.libcuda_dirs(), os.environ["CUDA_VISIBLE_DEVICES"])
"""


@pytest.mark.parametrize("level", [2, OWN_CONFINED, 5])
def test_triton_finds_the_driver_in_a_worker_where_ldconfig_is_not(level: int) -> None:
    sandbox = copy.copy(opened(level))
    sandbox._device = WITH_DRIVER

    with sandbox._start(LOOK_FOR_DRIVER, Limits(wall_s=30.0)) as worker:
        assert worker.end(grace_s=30.0).output == "['/usr/lib/gpu-driver'] GPU-b1\n"


def test_a_cpu_needs_nothing() -> None:
    assert find_device("cpu") is CPU
    assert (CPU.mounts, CPU.notes, CPU.cuda, CPU.variables()) == ([], (), False, {})


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


def test_level_5_has_a_gpu_only_if_a_kernel_runs_there(monkeypatch: pytest.MonkeyPatch) -> None:
    gpu = Device("cuda:0", ("/dev/zero",))
    monkeypatch.setattr(selection, "KERNEL", "pass")  # what a GPU without a fault does
    assert selection._plain.__wrapped__(True, gpu).has_cuda

    monkeypatch.setattr(selection, "KERNEL", "raise RuntimeError('no kernel image is available')")
    with pytest.raises(SandboxError, match=r"At level 5 the device cuda:0 runs no kernel \(RuntimeError: no kernel"):
        selection._plain.__wrapped__(True, gpu)


def test_the_driver_gets_the_memory_files_that_it_needs() -> None:
    rules = Bubblewrap(None, GPU_1)._rules()

    assert rules == seccomp.program(countable_memory_only=False)
    assert rules != Bubblewrap(None)._rules()


def test_a_confined_worker_with_a_gpu_may_listen_as_the_driver_does_and_reaches_nobody() -> None:
    with_gpu, without = (tried_sockets(with_gpu=has_gpu) for has_gpu in (True, False))

    assert with_gpu == {"listen": "", "connect": "EPERM", "accept": "EPERM", "datagrams": "EPERM", "internet": "EPERM"}
    assert set(without.values()) == {"EPERM"}


def tried_sockets(*, with_gpu: bool) -> dict[str, str]:
    """Return the name of the error of each attempt in a process with the filter of levels 3 and 4; empty for none."""
    rules = seccomp.program(countable_memory_only=False, without_namespaces=True, with_gpu=with_gpu)
    program = [sys.executable, "-c", SOCKETS, str(ROOT), rules.hex()]
    done = subprocess.run(program, capture_output=True, text=True, check=True, timeout=60)
    found: dict[str, str] = json.loads(done.stdout)
    return found


SOCKETS = """
import errno, json, os, socket, sys
sys.path.insert(0, sys.argv[1])
from autograder.worker.confinement import kernel

def tried(attempt):
    try:
        attempt()
    except OSError as error:
        return errno.errorcode[error.errno]
    return ""

def listening(number=1):
    server = socket.socket(socket.AF_UNIX)
    server.bind(f"\\0a test of the course, {os.getpid()}, {number}")
    server.listen()
    return server

server, client = listening(2), socket.socket(socket.AF_UNIX)
server.settimeout(0)
kernel.prctl(kernel.PR_SET_NO_NEW_PRIVS, 1)
kernel.filter_system_calls(bytes.fromhex(sys.argv[2]))
attempts = {
    "listen": listening,
    "connect": lambda: client.connect(server.getsockname()),
    "accept": server.accept,
    "datagrams": lambda: socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM),
    "internet": lambda: socket.socket(socket.AF_INET),
}
print(json.dumps({name: tried(attempt) for name, attempt in attempts.items()}))
"""


def test_a_worker_with_a_gpu_may_have_the_data_of_the_driver_too() -> None:
    limits = Limits()
    with_gpu, without = (rlimits(limits, processes=None, device=device)["RLIMIT_DATA"] for device in (GPU_1, CPU))
    assert without == limits.memory_bytes
    assert with_gpu - without == 2 << 30
