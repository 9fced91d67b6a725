"""The host's orders for one forked worker: one record, written by the host and read by the worker, as JSON."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Self

from autograder.protocol.decoder import decode, encode


@dataclass(frozen=True)
class Mounts:
    """The fresh mounts of a worker in namespaces of its own."""

    tmp_bytes: int
    shm_bytes: int
    course: tuple[str, ...] | None = None
    """Entries of the course that are shown, as paths below its root; None leaves it whole."""
    kept: tuple[str, ...] = ()
    """Directories below the temporary ones that stay, read-only: an interpreter may lie there."""
    own_users: bool = False
    """Whether a user namespace is made too, which is how an ordinary user gets the others."""


@dataclass(frozen=True)
class Files:
    """The files that Landlock lets a worker open; it can open nothing else."""

    abi: int
    """The version of Landlock to speak, at most the kernel's."""
    readable: tuple[str, ...]
    listable: tuple[str, ...]
    """Directories whose names may be listed though not everything in them may be read."""
    writable: tuple[str, ...]
    devices: tuple[str, ...]


@dataclass(frozen=True)
class Orders:
    """Everything that makes a worker out of a fresh process."""

    program: str
    path: str
    """Put first on `sys.path`: the course as this worker sees it."""
    home: str
    variables: Mapping[str, str]
    rlimits: Mapping[str, int]
    seccomp: bytes
    uid: int | None = None
    """The throw-away user to become; None keeps the user."""
    mounts: Mounts | None = None
    files: Files | None = None
    signal_calls: Mapping[str, int] = field(default_factory=dict)
    """Name to number of the calls that send signals, where only a filter can hold them back."""
    confined: bool = True
    """False at level 5, where there is nothing but limits."""

    def to_json(self) -> bytes:
        """Return the orders as the host writes them."""
        return json.dumps(self, default=encode).encode()

    @classmethod
    def from_json(cls, text: str | bytes) -> Self:
        """Read what `to_json` wrote."""
        return decode(json.loads(text), cls)
