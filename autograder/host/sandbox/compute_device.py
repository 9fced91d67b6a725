"""The device that a worker computes on: the CPU, or one GPU with its device nodes, driver libraries and /sys.

The GPU part follows the driver's documentation and is tested against a folder that looks like /dev. It has not yet
run on CUDA.
"""

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from autograder.host.sandbox.levels import SandboxError
from autograder.host.sandbox.view import PREFIX_PARTS, Bind, DeviceNode, Mount

CONTROL = ("nvidiactl", "nvidia-uvm", "nvidia-uvm-tools")
"""Device nodes that every process with a GPU opens, for any GPU."""
_NODE = "/dev/nvidia"
_GPU = re.compile(r"nvidia(\d+)")
_NAME = re.compile(r"cuda(?::(\d+))?")
# Folders for the driver's libraries, used by container tools and package managers instead of /usr/lib.
DRIVER_PLACES = ("/usr/local/nvidia", "/usr/lib/wsl", "/run/opengl-driver", "/opt/nvidia")


@dataclass(frozen=True)
class Device:
    """The CPU, or one GPU of the machine."""

    name: str = "cpu"
    nodes: tuple[str, ...] = ()
    """Device nodes that the worker may open; nodes of other GPUs do not exist for it."""
    readable: tuple[str, ...] = ()
    """Folders that the driver's library reads: its own, and /sys."""

    @property
    def cuda(self) -> bool:
        """Tell whether this is a GPU."""
        return bool(self.nodes)

    @property
    def mounts(self) -> list[Mount]:
        """Return the additional mounts for a worker with this device; they are made after /dev."""
        return [*(Bind(path, path) for path in self.readable), *(DeviceNode(node) for node in self.nodes)]

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

    Call this before any CUDA function. Not yet run on CUDA.
    """
    if device.cuda:
        os.environ |= {"CUDA_DEVICE_ORDER": "PCI_BUS_ID", "CUDA_VISIBLE_DEVICES": device.nodes[0].removeprefix(_NODE)}


def find_device(name: str, *, root: Path = Path("/")) -> Device:
    """Return the device called `cpu`, `cuda` or `cuda:N`; raise `SandboxError` if it is missing.

    `N` is the number in /dev/nvidiaN. The worker sees that GPU only, so its programs call it `cuda:0`. Without a
    number, take the first GPU that this process may use: a cluster's scheduler names it in CUDA_VISIBLE_DEVICES.
    """
    if name == "cpu":
        return CPU
    match = _NAME.fullmatch(name)
    if match is None:
        raise SandboxError(f"There is no device {name!r}; it is cpu, cuda or cuda:N.")
    gpus = sorted(_gpus(root / "dev"))
    allowed = os.environ.get("CUDA_VISIBLE_DEVICES", "").split(",")[0]
    first = int(allowed) if allowed.isdecimal() else next(iter(gpus), 0)
    wanted = int(match[1]) if match[1] else first
    if wanted not in gpus:
        there = ", ".join(f"cuda:{gpu}" for gpu in gpus) or "none"
        raise SandboxError(f"The device {name} is not on this machine: /dev/nvidia{wanted} is missing (GPUs: {there}).")
    control = (node for node in CONTROL if (root / "dev" / node).exists())
    nodes = tuple(f"/dev/{node}" for node in (f"nvidia{wanted}", *control))
    # Without /sys the driver finds no device: its error 304 says that the operating system refused a call.
    places = [place for place in (*DRIVER_PLACES, "/sys") if (root / place.lstrip("/")).is_dir()]
    return Device(name, nodes, tuple(place for place in places if not _is_already_visible(place)))


def _gpus(dev: Path) -> Iterator[int]:
    for node in dev.glob("nvidia*"):
        if match := _GPU.fullmatch(node.name):
            yield int(match[1])


def _is_already_visible(place: str) -> bool:
    """Tell whether `place` lies in a part of /usr that every worker sees."""
    parts = Path(place).parts
    return parts[:2] == ("/", "usr") and len(parts) > 2 and parts[2] in PREFIX_PARTS
