"""What a worker needs to use one GPU: its device nodes, the driver's libraries and a view of /sys, and nothing else.

Written from the driver's documentation and tested against a directory that looks like /dev; not yet run on CUDA.
"""

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from autograder.host.sandbox.levels import SandboxError
from autograder.host.sandbox.view import PREFIX_PARTS, Bind, DeviceNode, Mount

CONTROL = ("nvidiactl", "nvidia-uvm", "nvidia-uvm-tools")
"""Nodes that every process with a GPU opens, whichever GPU it is."""
_NODE = "/dev/nvidia"
_GPU = re.compile(r"nvidia(\d+)")
_NAME = re.compile(r"cuda(?::(\d+))?")
# Where container tools and package managers put the driver's libraries when they do not lie in /usr/lib.
DRIVER_PLACES = ("/usr/local/nvidia", "/usr/lib/wsl", "/run/opengl-driver", "/opt/nvidia")


@dataclass(frozen=True)
class Device:
    """What a worker computes on: the CPU, or one GPU of the machine."""

    name: str = "cpu"
    nodes: tuple[str, ...] = ()
    """Paths of the device nodes that it may open; those of other GPUs are not there for it."""
    readable: tuple[str, ...] = ()
    """What the driver's library reads besides: its own directory and /sys."""

    @property
    def cuda(self) -> bool:
        """Whether this is a GPU."""
        return bool(self.nodes)

    @property
    def mounts(self) -> list[Mount]:
        """The mounts beyond those of every worker, to be made after /dev."""
        return [*(Bind(path, path) for path in self.readable), *(DeviceNode(node) for node in self.nodes)]

    @property
    def notes(self) -> tuple[str, ...]:
        """What a record has to say of it."""
        if not self.cuda:
            return ()
        return (f"the worker sees {self.nodes[0]} and no other GPU; the driver's own calls are not filtered",)


CPU = Device()


def is_device_name(name: str) -> bool:
    """Whether `name` has the form of a device's name; whether it is there is another question."""
    return name == "cpu" or _NAME.fullmatch(name) is not None


def set_visible_device(device: Device) -> None:
    """Let this process see, of all GPUs, the one of its workers, so that both mean the same by `cuda`.

    To be called before CUDA is asked for anything. Not yet run on CUDA.
    """
    if device.cuda:
        os.environ |= {"CUDA_DEVICE_ORDER": "PCI_BUS_ID", "CUDA_VISIBLE_DEVICES": device.nodes[0].removeprefix(_NODE)}


def find_device(name: str, *, root: Path = Path("/")) -> Device:
    """Return the device called `cpu`, `cuda` or `cuda:N`; raises SandboxError if it is missing.

    `N` is the number in /dev/nvidiaN. Inside, that GPU is the only one, so programs know it as `cuda:0`. Without a
    number it is the first that this process may use: a cluster's scheduler says so in CUDA_VISIBLE_DEVICES.
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
    # Without /sys the driver finds no device at all (its error 304 says that the operating system refused a call).
    places = [place for place in (*DRIVER_PLACES, "/sys") if (root / place.lstrip("/")).is_dir()]
    return Device(name, nodes, tuple(place for place in places if not _is_already_visible(place)))


def _gpus(dev: Path) -> Iterator[int]:
    for node in dev.glob("nvidia*"):
        if match := _GPU.fullmatch(node.name):
            yield int(match[1])


def _is_already_visible(place: str) -> bool:
    """Whether `place` lies in a part of /usr that every worker sees."""
    parts = Path(place).parts
    return parts[:2] == ("/", "usr") and len(parts) > 2 and parts[2] in PREFIX_PARTS
