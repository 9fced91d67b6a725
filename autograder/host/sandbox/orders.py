"""Writes what a worker that is forked is told to do with itself; the other side is autograder.worker.confinement."""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any


@dataclass(frozen=True)
class Orders:
    """Everything that makes a worker out of a child of the zygote."""

    program: str
    path: str
    home: str
    variables: Mapping[str, str]
    rlimits: Mapping[str, int]
    seccomp: bytes
    uid: int | None = None
    mounts: Mapping[str, Any] | None = None
    files: Mapping[str, Any] | None = None
    signal_calls: Mapping[str, int] = field(default_factory=dict)
    confined: bool = True

    def to_json(self) -> bytes:
        """Return them as they cross."""
        return json.dumps({**asdict(self), "seccomp": base64.b64encode(self.seccomp).decode()}).encode()
