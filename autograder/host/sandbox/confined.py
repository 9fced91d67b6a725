"""Levels 3 and 4: Landlock, seccomp and limits, where the machine refuses namespaces (as a default container does).

The worker shares the host's view of processes and files; what it opens, whom it signals and which calls it makes is
decided by rules that it puts on itself before it reads a student's byte. The weaker points are in the notes.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Callable, Sequence
from pathlib import Path

from autograder.host.sandbox import folder, seccomp, zygote_unmounted
from autograder.host.sandbox.devices import CPU, Device
from autograder.host.sandbox.errors import SandboxError
from autograder.host.sandbox.forked import Forked, Taken
from autograder.host.sandbox.landlock_rules import listable, readable
from autograder.host.sandbox.levels import Level
from autograder.host.sandbox.limits import Limits
from autograder.host.sandbox.process import WorkerProcess
from autograder.host.sandbox.sandbox import Sandbox, environment, rlimits
from autograder.host.sandbox.slots import Slot
from autograder.host.sandbox.zygote import Zygote, Zygotes
from autograder.protocol.orders import Files, Orders

CREATE_RULESET, ASK_VERSION = 444, 1
NETWORK_SINCE, SCOPES_SINCE = 4, 6
DEVICES = ("/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom")
OF_THE_MACHINE = ("/proc/cpuinfo", "/proc/meminfo", "/proc/filesystems", "/proc/sys/vm/overcommit_memory")
# What the driver reads of the machine and writes of its own process (it names its threads).
OF_THE_DRIVER, BY_THE_DRIVER = ("/proc/driver/nvidia", "/proc/devices"), ("/proc/self/task",)


class Confined(Sandbox):
    """Landlock and seccomp; as root with a throw-away user for each worker (level 3), or as this user (level 4)."""

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
        self._notes = (*_notes(level, self._abi), *device.notes)
        self._course = zygote_unmounted.make_course()
        self.zygotes = Zygotes(lambda: self._zygote(preload=True))

    def _start(self, program: str, limits: Limits, masked: Sequence[str] = ()) -> WorkerProcess:
        zygote = None

        def fork(channel: int, output: int, orders: bytes, leash: int) -> int:
            nonlocal zygote
            zygote = self._zygote(preload=False)
            return zygote.fork(channel, output, orders, leash)

        def give_back() -> None:
            if zygote is not None:
                zygote.retire()
                zygote.process.wait()

        return self._begin(fork, program, limits, masked, give_back)

    def _fork(self, zygotes: Zygotes, program: str, limits: Limits, masked: Sequence[str] = ()) -> WorkerProcess:
        return self._begin(zygotes.fork, program, limits, masked)

    def _begin(
        self,
        fork: Callable[[int, int, bytes, int], int],
        program: str,
        limits: Limits,
        masked: Sequence[str],
        give_back: Callable[[], None] = lambda: None,
    ) -> WorkerProcess:
        taken = Taken(slot=Slot() if self.level == Level.CONFINED else None, private=folder.make(), give_back=give_back)
        assert taken.private is not None, "it was just made"
        try:
            orders = self._orders(program, limits, masked, taken.private, taken.slot)
        except BaseException:
            taken.release()
            raise
        return WorkerProcess(Forked(fork, orders, limits, taken), limits)

    def _orders(self, program: str, limits: Limits, masked: Sequence[str], private: Path, slot: Slot | None) -> Orders:
        root = folder.link_course(private, masked)
        home = private / "home"
        home.mkdir()
        # Only the user's own numbers can be limited, so at level 4 what runs already has to be added.
        processes = limits.processes + (0 if slot else tasks_of_this_user())
        if slot:
            os.chown(home, slot.uid, slot.uid)
            private.chmod(0o755)
        cuda = self._device.cuda
        files = Files(
            abi=self._abi,
            readable=(
                *(*readable(masked), *OF_THE_MACHINE, *self._device.readable),
                *(OF_THE_DRIVER if cuda else ()),
            ),
            listable=(*listable(), str(root), str(self._course.parent)),
            writable=(str(home),),
            devices=(*DEVICES, *self._device.nodes, *(BY_THE_DRIVER if cuda else ())),
        )
        return Orders(
            program=program,
            path=str(root),
            home=str(home),
            variables=environment(str(home)),
            rlimits=rlimits(limits, processes=processes),
            seccomp=seccomp.program(countable_memory_only=not cuda, shares_the_machine=True, same_user=slot is None),
            uid=slot.uid if slot else None,
            files=files,
            signal_calls=seccomp.numbers(seccomp.SIGNALS) if self._abi < SCOPES_SINCE and slot is None else {},
        )

    def _zygote(self, *, preload: bool) -> Zygote:
        return zygote_unmounted.start(self._course, preload=preload)


def landlock_version() -> int:
    """Return the version of Landlock that this kernel speaks, 0 for none."""
    library = ctypes.CDLL(None, use_errno=True)
    return max(
        0, library.syscall(ctypes.c_long(CREATE_RULESET), None, ctypes.c_size_t(0), ctypes.c_uint32(ASK_VERSION))
    )


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
    """Say what holds the worker here, and where that is weaker than a namespace."""
    notes = [
        f"Landlock (ABI {abi}), seccomp and limits; "
        + ("a throw-away user for each worker" if level == Level.CONFINED else "workers run as this user"),
        "total memory and disk are watched, not limited; /dev/shm is closed, so locks of multiprocessing do not work",
        "a worker can ask whether a file of the host exists and how large it is, not what is in it",
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
    """Whether root has CAP_SYS_PTRACE, which a default container takes away."""
    lines = Path("/proc/self/status").read_text().splitlines()
    effective = int(next(line.split()[1] for line in lines if line.startswith("CapEff:")), 16)
    return bool(effective >> 19 & 1)
