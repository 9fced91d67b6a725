"""The device that a worker computes on: the CPU, or one GPU with its device nodes, driver libraries and /sys.

The GPU part follows the driver's documentation and is tested against a folder that looks like /dev.
"""

import contextlib
import os
import re
import subprocess
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from autograder.host.sandbox.levels import SandboxError
from autograder.host.sandbox.view import PREFIX_PARTS, TOP_LEVEL, Bind, DeviceNode, Mount

CONTROL = ("nvidiactl", "nvidia-uvm", "nvidia-uvm-tools")
"""Device nodes that every process with a GPU opens, for any GPU."""
_GPU = re.compile(r"nvidia(\d+)")
_NAME = re.compile(r"cuda(?::(\d+))?")
# Folders for the driver's libraries, used by container tools and package managers instead of /usr/lib.
DRIVER_PLACES = ("/usr/local/nvidia", "/usr/lib/wsl", "/run/opengl-driver", "/opt/nvidia")
DRIVER_LIBRARY = "libcuda.so.1"
DRIVER_FILES = ("libcuda*.so*", "libnvidia-*.so*", "libnvcuvid.so*")
"""The driver's libraries in a folder that holds other files too."""


@dataclass(frozen=True)
class Device:
    """The CPU, or one GPU of the machine."""

    name: str = "cpu"
    nodes: tuple[str, ...] = ()
    """Device nodes that the worker may open; nodes of other GPUs do not exist for it."""
    readable: tuple[str, ...] = ()
    """Folders and files that the driver's library reads: its own, and /sys."""
    visible: str = ""
    """The value of CUDA_VISIBLE_DEVICES that means this GPU: its UUID, or else its number among all that open here."""
    libraries: str = ""
    """The folder with the driver's library; empty if it was not found."""
    libraries_listed: bool = True
    """Whether the loader finds that folder by its cache; if not, LD_LIBRARY_PATH names it."""

    @property
    def cuda(self) -> bool:
        """Tell whether this is a GPU."""
        return bool(self.nodes)

    @property
    def mounts(self) -> list[Mount]:
        """Return the additional mounts for a worker with this device; they are made after /dev."""
        return [*(Bind(path, path) for path in self.readable), *(DeviceNode(node) for node in self.nodes)]

    def variables(self, *, alone: bool = True) -> dict[str, str]:
        """Return the variables of a worker with this device; `alone` says that it can open no other GPU.

        Triton looks for the driver with `/sbin/ldconfig`, which no worker has, unless a variable names the folder.
        """
        if not self.cuda:
            return {}
        visible = self.visible if self.visible.startswith("GPU-") or not alone else "0"
        found = {"CUDA_DEVICE_ORDER": "PCI_BUS_ID", "CUDA_VISIBLE_DEVICES": visible}
        if self.libraries:
            found["TRITON_LIBCUDA_PATH"] = self.libraries
        return found | self.loader_variables

    @property
    def loader_variables(self) -> dict[str, str]:
        """Return the variables that the loader reads when a program starts; a zygote needs them for its workers."""
        return {} if self.libraries_listed or not self.libraries else {"LD_LIBRARY_PATH": self.libraries}

    @property
    def notes(self) -> tuple[str, ...]:
        """Return the sentences about the device for the record."""
        if not self.cuda:
            return ()
        return (f"the worker sees {self.nodes[0]} and no other GPU; the driver's own calls are not filtered",)


CPU = Device()


def is_device_name(name: str) -> bool:
    """Tell whether `name` is written like a device; the device itself may be missing."""
    return name == "cpu" or _NAME.fullmatch(name) is not None


def set_visible_device(device: Device) -> None:
    """Show this process only the GPU of its workers, so that `cuda` means the same device on both sides.

    Call this before any CUDA function.
    """
    if device.cuda:
        os.environ |= {"CUDA_DEVICE_ORDER": "PCI_BUS_ID", "CUDA_VISIBLE_DEVICES": device.visible}


@dataclass(frozen=True)
class _Gpu:
    """One GPU that this process can open: its number in /dev, and what the driver says about it."""

    node: int
    uuid: str = ""
    bus: str = ""


def find_device(name: str, *, root: Path = Path("/")) -> Device:
    """Return the device called `cpu`, `cuda` or `cuda:N`; raise `SandboxError` if it is missing.

    `N` is the number in /dev/nvidiaN. The worker sees that GPU only, so its programs call it `cuda:0`. Without a
    number, take the first GPU that this process may use: a cluster's scheduler names it in CUDA_VISIBLE_DEVICES, by its
    UUID or by its number among the GPUs that open here, in the order of their bus addresses.
    """
    if name == "cpu":
        return CPU
    match = _NAME.fullmatch(name)
    if match is None:
        raise SandboxError(f"There is no device {name!r}; it is cpu, cuda or cuda:N.")
    usable = sorted(_usable_gpus(root), key=lambda gpu: (gpu.bus, gpu.node))
    chosen = _numbered(name, int(match[1]), usable, root) if match[1] else _first_allowed(name, usable)
    uuid_known = bool(chosen.uuid) and "?" not in chosen.uuid
    control = (node for node in CONTROL if (root / "dev" / node).exists())
    libraries, listed = find_driver(_loader_cache(), root=root)
    # Without /sys the driver finds no device: its error 304 says that the operating system refused a call.
    places = [place for place in (*DRIVER_PLACES, "/sys") if (root / place.lstrip("/")).is_dir()]
    places += _driver_files(libraries, root)
    return Device(
        name,
        tuple(f"/dev/{node}" for node in (f"nvidia{chosen.node}", *control)),
        tuple(place for place in places if not _is_already_visible(place)),
        visible=chosen.uuid if uuid_known else str(usable.index(chosen)),
        libraries=libraries,
        libraries_listed=listed,
    )


def _usable_gpus(root: Path) -> Iterator[_Gpu]:
    """Yield the GPUs whose nodes this process can open; a scheduler may leave all nodes and allow one."""
    told = {gpu.node: gpu for gpu in _told_by_driver(root)}
    for path in (root / "dev").glob("nvidia*"):
        if match := _GPU.fullmatch(path.name):
            with contextlib.suppress(OSError):
                os.close(os.open(path, os.O_RDWR | os.O_CLOEXEC))
                yield told.get(int(match[1]), _Gpu(int(match[1])))


def _told_by_driver(root: Path) -> Iterator[_Gpu]:
    for file in (root / "proc/driver/nvidia/gpus").glob("*/information"):
        with contextlib.suppress(OSError):
            lines = (line.partition(":") for line in file.read_text(errors="replace").splitlines())
            told = {name.strip(): value.strip() for name, _, value in lines}
            if told.get("Device Minor", "").isdecimal():
                yield _Gpu(int(told["Device Minor"]), told.get("GPU UUID", ""), file.parent.name)


def _numbered(name: str, number: int, usable: Sequence[_Gpu], root: Path) -> _Gpu:
    for gpu in usable:
        if gpu.node == number:
            return gpu
    there = ", ".join(f"cuda:{node}" for node in sorted(gpu.node for gpu in usable)) or "none"
    node = f"/dev/nvidia{number}"
    said = f"this process may not open {node}" if (root / node.lstrip("/")).exists() else f"{node} is missing"
    raise SandboxError(f"The device {name} is not on this machine: {said} (GPUs: {there}).")


def _first_allowed(name: str, usable: Sequence[_Gpu]) -> _Gpu:
    asked = os.environ.get("CUDA_VISIBLE_DEVICES")
    if not usable:
        raise SandboxError(f"The device {name} is not on this machine: no /dev/nvidiaN opens (GPUs: none).")
    if asked is None:
        return usable[0]
    first = asked.split(",")[0].strip()
    if first.startswith("MIG-"):
        raise SandboxError(f"CUDA_VISIBLE_DEVICES names a part of a GPU ({first}); workers can have whole GPUs only.")
    if first.isdecimal() and int(first) < len(usable):
        return usable[int(first)]
    for gpu in usable:
        if first.startswith("GPU-") and gpu.uuid.startswith(first):
            return gpu
    raise SandboxError(
        f"CUDA_VISIBLE_DEVICES is {asked!r}, which names none of the {len(usable)} GPUs that this process can open."
    )


def find_driver(listed: str, *, root: Path = Path("/")) -> tuple[str, bool]:
    """Return the folder of the driver's library, and whether the loader's cache has it; `("", True)` without a driver.

    `listed` is the output of `ldconfig -p`. After the cache come LD_LIBRARY_PATH and the places of container tools.
    """
    for line in listed.splitlines():
        library, _, path = line.strip().partition(" => ")
        if library.split(" ")[0] == DRIVER_LIBRARY and "64" in library:  # not the one for 32-bit programs
            return str(Path(path).parent), True
    searched = os.environ.get("LD_LIBRARY_PATH", "").split(":")
    known = (f"{place}/{part}" for place in DRIVER_PLACES for part in ("lib64", "lib"))
    for folder in (*filter(None, searched), *known):
        if folder.startswith("/") and (root / folder.lstrip("/") / DRIVER_LIBRARY).exists():
            return folder, False
    return "", True


def _loader_cache() -> str:
    for program in ("/sbin/ldconfig", "/usr/sbin/ldconfig"):
        with contextlib.suppress(OSError, subprocess.SubprocessError):
            command = [program, "-p"]
            return subprocess.run(command, capture_output=True, text=True, check=True, timeout=10.0, env={}).stdout
    return ""


def _driver_files(libraries: str, root: Path) -> list[str]:
    """Return the driver's own files where its folder is not shown as a whole, since it may hold anything."""
    if not libraries or _is_already_visible(libraries) or libraries.startswith(DRIVER_PLACES):
        return []
    folder = root / libraries.lstrip("/")
    return sorted({f"{libraries}/{file.name}" for pattern in DRIVER_FILES for file in folder.glob(pattern)})


def _is_already_visible(place: str) -> bool:
    """Tell whether `place` lies in a part of the system that every worker sees."""
    parts = Path(place).parts[1:]
    if parts[:1] == ("usr",):
        parts = parts[2:] if parts[:2] == ("usr", "local") else parts[1:]
        return parts[:1] != () and parts[0] in PREFIX_PARTS
    return parts[:1] != () and parts[0] in TOP_LEVEL
