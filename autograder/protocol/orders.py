"""The host's orders for one forked worker: one JSON record that the host writes and the worker reads."""

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
    """Directories below the temporary ones that stay visible, read-only, since an interpreter may lie there."""
    covered: tuple[str, ...] = ()
    """Directories of /proc that the worker sees empty."""
    own_users: bool = False
    """Whether to make a user namespace too; an ordinary user needs it to make the others."""


@dataclass(frozen=True)
class Files:
    """The files that Landlock lets a worker open; it can open nothing else."""

    abi: int
    """The version of Landlock to use, at most the kernel's."""
    readable: tuple[str, ...]
    listable: tuple[str, ...]
    """Directories that may be listed, although some of their content may not be read."""
    writable: tuple[str, ...]
    devices: tuple[str, ...]


@dataclass(frozen=True)
class Orders:
    """All settings that turn a new process into a worker."""

    program: str
    path: str
    """The path of the course as this worker sees it, to be put first on `sys.path`."""
    home: str
    variables: Mapping[str, str]
    rlimits: Mapping[str, int]
    seccomp: bytes
    uid: int | None = None
    """The throw-away user to become; None keeps the user."""
    mounts: Mounts | None = None
    files: Files | None = None
    signal_calls: Mapping[str, int] = field(default_factory=dict)
    """Names and numbers of the system calls that send signals, if only a filter can block them."""
    confined: bool = True
    """False at level 5, which only has limits."""

    def to_json(self) -> bytes:
        """Return the orders as the host writes them."""
        return json.dumps(self, default=encode).encode()

    @classmethod
    def from_json(cls, text: str | bytes) -> Self:
        """Read what `to_json` wrote."""
        return decode(json.loads(text), cls)
