"""Landlock rules for workers without mounts: they allow the same files as the mounts in `view`."""

import ctypes
import os
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from autograder.host.sandbox.compute_device import Device
from autograder.host.sandbox.view import Bind, Cover, course, file_system
from autograder.protocol.orders import Files

CREATE_RULESET, ASK_VERSION = 444, 1
NETWORK_SINCE, SCOPES_SINCE = 4, 6
DEVICES = ("/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom")
PROC_GLOBAL = ("/proc/cpuinfo", "/proc/meminfo", "/proc/filesystems", "/proc/sys/vm/overcommit_memory")
# Paths that the GPU driver reads, and a path of its own process where it writes the names of threads.
DRIVER_READS, DRIVER_WRITES = ("/proc/driver/nvidia", "/proc/devices"), ("/proc/self/task",)


def landlock_version() -> int:
    """Return the version of Landlock that this kernel supports, 0 for none."""
    library = ctypes.CDLL(None, use_errno=True)
    return max(
        0, library.syscall(ctypes.c_long(CREATE_RULESET), None, ctypes.c_size_t(0), ctypes.c_uint32(ASK_VERSION))
    )


def landlock_files(abi: int, masked: Sequence[str], *, home: str, listed: Sequence[str], device: Device) -> Files:
    """Return the files that Landlock allows one worker: `home` to write, and `listed` to list.

    To these it adds what every worker may read and list, and the nodes of its device.
    """
    return Files(
        abi=abi,
        readable=(*readable(masked), *PROC_GLOBAL, *device.readable, *(DRIVER_READS if device.cuda else ())),
        listable=(*listable(), *listed),
        writable=(home,),
        devices=(*DEVICES, *device.nodes, *(DRIVER_WRITES if device.cuda else ())),
    )


def readable(masked: Sequence[str] = ()) -> list[str]:
    """Return the files and folders of the host that a worker may read, with everything below them."""
    binds, covers = _system()
    places = [each for bind in binds for each in _around(bind, covers)]
    return list(dict.fromkeys([*places, *(str(source) for source, _ in course(masked))]))


def listable() -> list[str]:
    """Return folders that may only be listed: an import searches them, but some of their content is covered."""
    binds, covers = _system()
    return sorted({str(parent) for cover in covers for parent in cover.parents if _is_below(parent, binds)})


def _system() -> tuple[list[Path], list[Path]]:
    """Return what every worker sees of the host, and what is covered in it."""
    # The course is left out: it is bound from another folder and differs between workers.
    mounts = file_system()
    ours = {str(source) for source, _ in course()}
    binds = [Path(mount.source) for mount in mounts if isinstance(mount, Bind) and mount.source not in ours]
    covers = [Path(mount.target) for mount in mounts if isinstance(mount, Cover)]
    return binds, [cover for cover in covers if _is_below(cover, binds)]


def _is_below(place: Path, binds: Iterable[Path]) -> bool:
    return any(place.is_relative_to(bind) for bind in binds)


def _around(place: Path, covers: Sequence[Path]) -> Iterator[str]:
    """Yield `place` whole, or its entries one by one without the covered ones."""
    if place in covers:
        return
    inside = [cover for cover in covers if cover.is_relative_to(place)]
    if not inside:
        yield str(place)
        return
    with os.scandir(place) as entries:
        for entry in sorted(entries, key=lambda each: each.name):
            yield from _around(Path(entry.path), inside)
