"""Control groups, version 1 or 2: the only limit that counts all memory of all processes together.

Where the controller of processors can be had too, workers share the processors equally: one that starts a hundred
processes gets no more time than its neighbour, and all the time that nobody else wants.
"""

import contextlib
import itertools
import os
import re
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from autograder.host.sandbox.resource_limits import Limits

_NUMBERS = itertools.count()
_HOST_PID = re.compile(r"autograder-(\d+)-\d+")

EQUAL_SHARES, EQUAL_WEIGHT = 1024, 100  # the kernel's own values, of version 1 and 2
# Files that may be missing: kernels without swap accounting have none of them.
_OPTIONAL = frozenset({"memory.memsw.limit_in_bytes", "memory.swap.max", "memory.oom.group"})


@dataclass(frozen=True)
class Hierarchy:
    """The folders where this process may make control groups: one a controller in version 1, one in version 2."""

    version: int
    directories: tuple[Path, ...]
    shares_processors: bool

    def group(self, limits: Limits, *, spare: int = 1) -> "Group":
        """Make a group with these limits; raise `OSError` where that is not allowed.

        `spare` is the number of our own processes in the group, beside the worker's.
        """
        name = f"autograder-{os.getpid()}-{next(_NUMBERS)}"
        group = Group(self.version, tuple(directory / name for directory in self.directories), self.shares_processors)
        try:
            group.create(limits, spare)
        except OSError:
            group.remove()
            raise
        return group

    def sweep(self) -> None:
        """Remove the groups of hosts that have died."""
        for directory in self.directories:
            for place in directory.glob("autograder-*"):
                match = _HOST_PID.fullmatch(place.name)
                if match and not Path("/proc", match[1]).exists():
                    with contextlib.suppress(OSError):
                        place.rmdir()


@dataclass(frozen=True)
class Group:
    """The control group of one worker."""

    version: int
    directories: tuple[Path, ...]
    shares_processors: bool = False

    def create(self, limits: Limits, spare: int = 1) -> None:
        """Make the folders and write the limits."""
        for directory in self.directories:
            directory.mkdir()
        for file, value in self._settings(limits, spare).items():
            self._write(file, value)

    def _settings(self, limits: Limits, spare: int) -> Mapping[str, int]:
        pids = limits.processes + spare
        if self.version == 1:
            return {
                "memory.limit_in_bytes": limits.memory_bytes,
                "memory.memsw.limit_in_bytes": limits.memory_bytes,
                "pids.max": pids,
                **({"cpu.shares": EQUAL_SHARES} if self.shares_processors else {}),
            }
        return {
            "memory.max": limits.memory_bytes,
            "memory.swap.max": 0,
            "memory.oom.group": 1,
            "pids.max": pids,
            **({"cpu.weight": EQUAL_WEIGHT} if self.shares_processors else {}),
        }

    def _write(self, file: str, value: int) -> None:
        places = [directory / file for directory in self.directories if (directory / file).exists()]
        if not places and file not in _OPTIONAL:
            raise FileNotFoundError(f"the control group has no {file}")
        for place in places:
            place.write_text(str(value))

    def add(self, pid: int) -> None:
        """Move a process into the group; its later children follow."""
        for directory in self.directories:
            (directory / "cgroup.procs").write_text(str(pid))

    def oom_kills(self) -> int:
        """Return how many processes of the group the kernel has killed for lack of memory."""
        file = "memory.oom_control" if self.version == 1 else "memory.events"
        for directory in self.directories:
            with contextlib.suppress(OSError):
                counters = dict(line.split() for line in (directory / file).read_text().splitlines())
                return int(counters.get("oom_kill", 0))
        return 0

    def kill(self) -> None:
        """Kill every process in the group, where the kernel can (version 2)."""
        with contextlib.suppress(OSError):
            if self.version == 2:
                (self.directories[0] / "cgroup.kill").write_text("1")

    def remove(self, *, patience_s: float = 1.0) -> None:
        """Remove the folders; the last processes may need a moment to leave."""
        deadline = time.monotonic() + patience_s
        for directory in self.directories:
            while directory.exists():
                with contextlib.suppress(OSError):
                    directory.rmdir()
                    break
                if time.monotonic() > deadline:
                    break  # the next host removes it
                time.sleep(0.005)


def find_hierarchy() -> Hierarchy | None:
    """Return where this process can make groups with memory and process limits, or None."""
    for hierarchy in _candidates():
        hierarchy.sweep()
        with contextlib.suppress(OSError):
            hierarchy.group(Limits()).remove()
            return hierarchy
    return None


def leave_processor_group(pid: int) -> Path | None:
    """Move a worker from its group of processors to the group above, and return the one it was in.

    This is for kernels that give each group a real time of its own, in version 1. Return None where there is no such
    group, or where this process may not move the worker.
    """
    group = _directories_of(str(pid)).get("cpu")
    if group is None or not _HOST_PID.fullmatch(group.name) or not (group / "cpu.rt_runtime_us").exists():
        return None
    with contextlib.suppress(OSError):
        (group.parent / "cgroup.procs").write_text(str(pid))
        return group
    return None


def _candidates() -> Iterator[Hierarchy]:
    own = _directories_of("self")
    if "memory" in own and "pids" in own:
        if "cpu" in own:
            yield Hierarchy(1, tuple(dict.fromkeys((own["memory"], own["pids"], own["cpu"]))), shares_processors=True)
        yield Hierarchy(1, tuple(dict.fromkeys((own["memory"], own["pids"]))), shares_processors=False)
    if "" in own:
        # In version 2, a group that holds processes cannot limit its children, so the parent is tried as well. At a
        # container's root there is no parent: then the processes of the group move into a child of it.
        for directory in (own[""], own[""].parent):
            yield from _delegating(directory)
        if _make_room(own[""]):
            yield from _delegating(own[""])


def _make_room(directory: Path) -> bool:
    """Move the processes of a group into a child of it; return False if the group is not this user's."""
    leaf = directory / "autograder-hosts"
    with contextlib.suppress(OSError):
        if directory.stat().st_uid != os.geteuid() or not {"memory", "pids"} <= _words(
            directory / "cgroup.controllers"
        ):
            return False
        leaf.mkdir(exist_ok=True)
        for process in _words(directory / "cgroup.procs"):
            (leaf / "cgroup.procs").write_text(process)
        return True
    with contextlib.suppress(OSError):
        leaf.rmdir()
    return False


def _words(file: Path) -> set[str]:
    return set(file.read_text().split())


def _delegating(directory: Path) -> Iterator[Hierarchy]:
    """Yield the hierarchy of version 2 below `directory`, with the controller of processors if it can be had."""
    if _delegates(directory, {"memory", "pids", "cpu"}):
        yield Hierarchy(2, (directory,), shares_processors=True)
    if _delegates(directory, {"memory", "pids"}):
        yield Hierarchy(2, (directory,), shares_processors=False)


def _delegates(directory: Path, controllers: set[str]) -> bool:
    """Tell whether children of `directory` have these controllers, after enabling them."""
    control = directory / "cgroup.subtree_control"
    with contextlib.suppress(OSError):
        if not controllers <= _words(control):
            control.write_text(" ".join(f"+{name}" for name in sorted(controllers)))
        return controllers <= _words(control)
    return False


def _directories_of(process: str) -> dict[str, Path]:
    """Map each controller to the folder of a process's own group; version 2 has the controller ''."""
    try:
        groups = Path("/proc", process, "cgroup").read_text().splitlines()
        mounts = Path("/proc/self/mountinfo").read_text().splitlines()
    except OSError:
        return {}
    paths = {name: path for _, names, path in (line.split(":", 2) for line in groups) for name in names.split(",")}
    own = {}
    for mount in mounts:
        before, _, after = mount.partition(" - ")
        root, place = before.split()[3:5]
        kind, _, options = after.split(maxsplit=2)
        for name in [""] if kind == "cgroup2" else options.split(",") if kind == "cgroup" else []:
            if name in paths and Path(paths[name]).is_relative_to(root):
                own[name] = Path(place, Path(paths[name]).relative_to(root))
    return own
