"""What the host orders for one worker; it crosses as JSON, from the trusted side only."""

from __future__ import annotations

import base64
import json
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Mounts:
    """What a worker in namespaces of its own finds freshly mounted."""

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
    """What Landlock lets a worker open; everything else is closed to it."""

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
    """Put first on ``sys.path``: the course as this worker sees it."""
    home: str
    variables: dict[str, str]
    rlimits: dict[str, int]
    seccomp: bytes
    uid: int | None = None
    """The throw-away user to become; None keeps the user."""
    mounts: Mounts | None = None
    files: Files | None = None
    signal_calls: dict[str, int] = field(default_factory=dict)
    """Name to number of the calls that send signals, where only a filter can hold them back."""
    confined: bool = True
    """False at level 5, where there is nothing but limits."""


def from_json(text: str) -> Orders:
    """Read what the host has written."""
    data: dict[str, Any] = json.loads(text)
    data["seccomp"] = base64.b64decode(data["seccomp"])
    if mounts := data.get("mounts"):
        course = mounts.get("course")
        entries = None if course is None else tuple(course)
        data["mounts"] = Mounts(**{**mounts, "course": entries, "kept": tuple(mounts["kept"])})
    if files := data.get("files"):
        lists = {name: tuple(files[name]) for name in ("readable", "listable", "writable", "devices")}
        data["files"] = Files(abi=files["abi"], **lists)
    return Orders(**data)
