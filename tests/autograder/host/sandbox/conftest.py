"""The tiers under test, and programs that run in them."""

import os
import time
from collections.abc import Callable, Sequence
from typing import Literal

import pytest

from autograder.host.channel import Channel
from autograder.host.sandbox import Ending, Limits, Sandbox, SandboxError, WorkerProcess, open_sandbox, view
from autograder.host.sandbox.bubblewrap import Bubblewrap
from autograder.host.sandbox.zygote import Zygote, ZygotePool
from autograder.protocol import FrameKind, Message, serialise
from autograder.protocol.contract import request_body
from autograder.protocol.requests.answers import Ask
from autograder.protocol.requests.loads import LoadAnswer, Part
from tests.skips import skip_level

MIB = 1 << 20
LIMITS = Limits(wall_s=10.0, memory_bytes=128 * MIB, processes=32, tmp_bytes=16 * MIB, file_bytes=20 * MIB)
WITH_TORCH = Limits(wall_s=60.0, memory_bytes=2048 * MIB)
Run = Callable[..., Ending]
"""Run a program in a tier until it ends by itself or is ended."""


class FromZygote(Sandbox):
    """A level whose workers are all forked from a zygote, which imports nothing and so starts at once."""

    def __init__(self, sandbox: Sandbox) -> None:
        self._sandbox, self.level = sandbox, sandbox.level
        self.zygotes = ZygotePool(self._own_zygote)
        self._outside: list[str] = []
        self._zygotes_view: object = None

    def _own_zygote(self) -> Zygote:
        if isinstance(self._sandbox, Bubblewrap):
            return self._sandbox._zygote(preload=False, masked=self._outside)
        return self._sandbox._zygote(preload=False)

    def _start(self, program: str, limits: Limits, masked: Sequence[str] = ()) -> WorkerProcess:
        self._outside = view.outside_course(masked)
        # A new zygote once the view has changed: a zygote keeps its first view, and some tests change the view.
        now = view.file_system(self._outside)
        if now != self._zygotes_view:
            self.zygotes.close()
            self._zygotes_view = now
        return self._sandbox._fork(self.zygotes, program, limits, masked)


# The confined level of this user: root starts workers as other users, anybody else as themselves.
OWN_CONFINED = 3 if os.geteuid() == 0 else 4
# At levels 3 and 4 a cold worker is itself the only child of a zygote.
OWN_TIERS = {
    **{"level 1": 1, "level 1 forked": 1, "level 2": 2, "level 2 forked": 2},
    f"level {OWN_CONFINED}": OWN_CONFINED,
}


@pytest.fixture(scope="session", params=OWN_TIERS)
def tier(request: pytest.FixtureRequest) -> Sandbox:
    return by_name(request.param)


def by_name(name: str) -> Sandbox:
    """Open a tier of the table, or `level 5`."""
    sandbox = opened(OWN_TIERS.get(name, 5))
    return FromZygote(sandbox) if name.endswith("forked") else sandbox


@pytest.fixture(scope="session")
def sandbox() -> Sandbox:
    """The strongest tier."""
    return opened("auto")


def opened(level: int | Literal["auto"]) -> Sandbox:
    """Open a level; skip where the machine lacks what it needs and nobody can install that."""
    try:
        return open_sandbox(level, trust=level == 5)
    except SandboxError as error:
        skip_level(error)


@pytest.fixture(scope="session")
def run() -> Run:
    def run(sandbox: Sandbox, program: str, *, limits: Limits = LIMITS, masked: tuple[str, ...] = ()) -> Ending:
        with sandbox._start(program, limits, masked) as worker:
            return worker.end(grace_s=limits.wall_s + 5)

    return run


def serving(sandbox: Sandbox, masked: tuple[str, ...] = ()) -> tuple[WorkerProcess, Channel]:
    """Start a worker that waits for requests."""
    worker = sandbox.start(limits=WITH_TORCH, masked=masked)
    channel = Channel(worker.socket)
    channel.wait_ready(time.monotonic() + 60)
    return worker, channel


def asked(channel: Channel, text: str, question: object) -> Message:
    """Load an answer of this text, and ask it."""
    load = LoadAnswer("value", "entry", (Part("answer", text),))
    channel.request(FrameKind.LOAD, serialise(request_body(load)), deadline_s=time.monotonic() + 20)
    return channel.request(FrameKind.CALL, serialise(request_body(Ask(question))), deadline_s=time.monotonic() + 20)
