"""Levels 3 and 4: Landlock, seccomp and limits, for machines that refuse namespaces, such as a default container.

The worker shares the host's processes and file system. It restricts itself before it reads a student's first byte:
which files it opens, which processes it signals, which system calls it makes. Landlock's rules allow the same files as
the mounts in `view`. The notes name the weaker points.
"""

import ctypes
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path

from autograder.host.sandbox import seccomp
from autograder.host.sandbox.compute_device import CPU, Device
from autograder.host.sandbox.interpreter import environment, rlimits
from autograder.host.sandbox.levels import NOT_ENFORCED, Level, SandboxError
from autograder.host.sandbox.process import WorkerProcess
from autograder.host.sandbox.resource_limits import Limits
from autograder.host.sandbox.resources import Resources, ThrowawayUser, folder
from autograder.host.sandbox.sandbox import Sandbox
from autograder.host.sandbox.view import Bind, Cover, course, file_system
from autograder.host.sandbox.zygote import ForkedWorker, Zygote, ZygotePool, make_course, start_unmounted
from autograder.protocol.orders import Files, Orders

CREATE_RULESET, ASK_VERSION = 444, 1
NETWORK_SINCE, SCOPES_SINCE = 4, 6
DEVICES = ("/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom")
PROC_GLOBAL = ("/proc/cpuinfo", "/proc/meminfo", "/proc/filesystems", "/proc/sys/vm/overcommit_memory")
DRIVER_NOTES = ("a worker can listen on a socket, as the driver does, and neither connect nor accept",)
# Paths that the GPU driver reads, and a path of its own process where it writes the names of threads.
DRIVER_READS, DRIVER_WRITES = ("/proc/driver/nvidia", "/proc/devices"), ("/proc/self/task",)


class Confined(Sandbox):
    """Confine each worker by Landlock and seccomp; it runs as a throw-away user (level 3) or as this user (level 4)."""

    def __init__(self, level: Level, device: Device = CPU, abi: int | None = None) -> None:
        self._abi = landlock_version() if abi is None else abi
        self._device = device
        self.level = level
        _refuse_the_wrong_user(level)
        if self._abi < 1:
            raise SandboxError(
                "This kernel has no Landlock (it came with Linux 5.13, and can be switched off at boot)."
            )
        folder.sweep()
        self._notes = (*_notes(level, self._abi), *device.notes, *(DRIVER_NOTES if device.cuda else ()))
        self._course = make_course()
        self.zygotes = ZygotePool(lambda: self._zygote(preload=True))

    def _start(self, program: str, limits: Limits, masked: Sequence[str] = ()) -> WorkerProcess:
        zygote = None

        def fork(channel: int, output: int, orders: bytes, lifeline: int) -> int:
            nonlocal zygote
            zygote = self._zygote(preload=False)
            return zygote.fork(channel, output, orders, lifeline)

        def give_back() -> None:
            if zygote is not None:
                zygote.retire()
                zygote.process.wait()

        return self._begin(fork, program, limits, masked, give_back)

    def _fork(self, zygotes: ZygotePool, program: str, limits: Limits, masked: Sequence[str] = ()) -> WorkerProcess:
        return self._begin(zygotes.fork, program, limits, masked)

    def _begin(
        self,
        fork: Callable[[int, int, bytes, int], int],
        program: str,
        limits: Limits,
        masked: Sequence[str],
        give_back: Callable[[], None] = lambda: None,
    ) -> WorkerProcess:
        user = ThrowawayUser() if self.level == Level.CONFINED else None
        resources = Resources(user=user, private=folder.make(), give_back=give_back)
        assert resources.private is not None, "it was just made"
        try:
            orders = self._orders(program, limits, masked, resources.private, resources.user)
        except BaseException:
            resources.release()
            raise
        return WorkerProcess(ForkedWorker(fork, orders, limits, resources), limits)

    def _orders(
        self, program: str, limits: Limits, masked: Sequence[str], private: Path, user: ThrowawayUser | None
    ) -> Orders:
        root = folder.link_course(private, masked)
        home = private / "home"
        home.mkdir()
        # The kernel counts all processes of a user, so level 4 adds those that run already.
        processes = limits.processes + (0 if user else tasks_of_this_user())
        if user:
            os.chown(home, user.uid, user.uid)
            private.chmod(0o755)
        cuda = self._device.cuda
        listed = (str(root), str(self._course.parent))
        files = landlock_files(self._abi, masked, home=str(home), listed=listed, device=self._device)
        return Orders(
            program=program,
            path=str(root),
            home=str(home),
            variables=environment(str(home), self._device),
            rlimits=rlimits(limits, processes=processes, device=self._device),
            seccomp=seccomp.program(
                countable_memory_only=not cuda, without_namespaces=True, same_user=user is None, with_gpu=cuda
            ),
            uid=user.uid if user else None,
            files=files,
            signal_calls=seccomp.numbers(seccomp.SIGNALS) if self._abi < SCOPES_SINCE and user is None else {},
        )

    def _zygote(self, *, preload: bool) -> Zygote:
        return start_unmounted(self._course, preload=preload, device=self._device)


def tasks_of_this_user() -> int:
    """Return how many processes and threads this user has now, on the whole machine."""
    count = 0
    for status in Path("/proc").glob("[0-9]*/status"):
        try:
            lines = dict(line.split(":", 1) for line in status.read_text().splitlines() if ":" in line)
        except OSError:
            continue
        if int(lines["Uid"].split()[0]) == os.getuid():
            count += int(lines["Threads"])
    return count


def _refuse_the_wrong_user(level: Level) -> None:
    root = os.geteuid() == 0
    if level == Level.CONFINED and not root:
        raise SandboxError("Level 3 needs root, to run each worker as a user of its own.")
    if level == Level.CONFINED_SAME_USER and root:
        raise SandboxError("Level 4 would run workers as root; root has level 3.")


def _notes(level: Level, abi: int) -> tuple[str, ...]:
    """Return sentences about how the worker is confined here, and where this is weaker than a namespace."""
    notes = [
        f"Landlock (ABI {abi}), seccomp and limits; "
        + ("a throw-away user for each worker" if level == Level.CONFINED else "workers run as this user"),
        "processors are not divided between workers; an answer that takes too long beside others is graded again alone",
        "total memory and disk are watched, not limited; /dev/shm is closed, so locks of multiprocessing do not work",
        "a worker can ask whether a file of the host exists and how large it is, not what is in it",
        NOT_ENFORCED,
    ]
    if level == Level.CONFINED and not _may_look_into_processes():
        notes.append("a file that is removed while it is open escapes the watch over the disk")
    if level == Level.CONFINED_SAME_USER:
        notes.append("processes are counted together with all others of this user")
        notes.append("a worker cannot make a file executable, or change rights and times of its own files")
    if abi < NETWORK_SINCE:
        notes.append(f"Landlock before ABI {NETWORK_SINCE} does not know the network, so only seccomp keeps it away")
    if abi < SCOPES_SINCE and level == Level.CONFINED_SAME_USER:
        notes.append(
            "this kernel is older than Linux 6.12: Landlock does not hold signals back, so a filter lets each worker"
            " signal only itself, and what a worker forks can signal its parent"
        )
    return tuple(notes)


def _may_look_into_processes() -> bool:
    """Tell whether root has CAP_SYS_PTRACE, which a default container removes."""
    lines = Path("/proc/self/status").read_text().splitlines()
    effective = int(next(line.split()[1] for line in lines if line.startswith("CapEff:")), 16)
    return bool(effective >> 19 & 1)


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
        listable=(*listable(masked), *listed),
        writable=(home,),
        devices=(*DEVICES, *device.nodes, *(DRIVER_WRITES if device.cuda else ())),
    )


def readable(masked: Sequence[str] = ()) -> list[str]:
    """Return the files and folders of the host that a worker may read, with everything below them."""
    binds, covers = _system(masked)
    places = [each for bind in binds for each in _around(bind, covers)]
    return list(dict.fromkeys([*places, *(str(source) for source, _ in course(masked))]))


def listable(masked: Sequence[str] = ()) -> list[str]:
    """Return folders that may only be listed: an import searches them, but some of their content is covered."""
    binds, covers = _system(masked)
    return sorted({str(parent) for cover in covers for parent in cover.parents if _is_below(parent, binds)})


def _system(masked: Sequence[str]) -> tuple[list[Path], list[Path]]:
    """Return the host's files that a worker sees, and the covered places in them."""
    # The course is left out: it is bound from another folder and differs between workers.
    mounts = file_system(masked)
    ours = {str(source) for source, _ in course(masked)}
    binds = [Path(mount.source) for mount in mounts if isinstance(mount, Bind) and mount.source not in ours]
    covers = [Path(mount.target) for mount in mounts if isinstance(mount, Cover)]
    return binds, [cover for cover in covers if _is_below(cover, binds)]


def _is_below(place: Path, binds: Iterable[Path]) -> bool:
    return any(place.is_relative_to(bind) for bind in binds)


def _around(place: Path, covers: Sequence[Path]) -> Iterator[str]:
    """Yield `place` if nothing in it is covered; otherwise yield only its entries that are not covered."""
    if place in covers:
        return
    inside = [cover for cover in covers if cover.is_relative_to(place)]
    if not inside:
        yield str(place)
        return
    with os.scandir(place) as entries:
        for entry in sorted(entries, key=lambda each: each.name):
            yield from _around(Path(entry.path), inside)
