"""What a Dask worker does: a path comes in, a record goes out as JSON.

The worker belongs to us. Like any host it opens a sandbox and never loads what a student made. The secret seed does not
travel: every machine reads it from the file that they share.
"""

from __future__ import annotations

import functools
import os
import platform
from dataclasses import dataclass
from pathlib import Path

from autograder.classroom.batch.seed import secret_seed
from autograder.classroom.batch.submitted import HandedIn
from autograder.host.records import GRADER_VERSION
from autograder.host.sandbox import Sandbox, SandboxError, open_sandbox


@dataclass(frozen=True)
class Order:
    """One hand-in to grade; plain text, so that nothing but text has to be unpickled."""

    assignment: str
    student: str
    path: str
    sha256: str
    notes: tuple[str, ...]
    seed_file: str
    version: str  # of the grader that asks
    level: str  # "auto", or "1" to "5"
    trust: bool
    device: str = "cpu"


def grade_order(order: Order) -> str:
    """Grade one hand-in here and return its record as JSON."""
    hand_in = HandedIn(order.assignment, order.student, Path(order.path), order.notes)
    # asked again, since a worker may have joined after the start
    sentence = unreadiness(order.path, order.seed_file, order.version, order.level, order.trust, order.device)
    if sentence:
        return hand_in.not_graded(f"The machine {platform.node()} {sentence}").to_json()
    if hand_in.sha256 != order.sha256:
        return hand_in.not_graded(f"{order.path} reads differently on the machine {platform.node()}.").to_json()
    sandbox = _sandbox(order.level, order.trust, order.device)
    return hand_in.grade(sandbox=sandbox, seed=secret_seed(Path(order.seed_file))).to_json()


def unreadiness(path: str, seed_file: str, version: str, level: str, trust: bool, device: str = "cpu") -> str:
    """Why this worker cannot grade what lies at ``path``, in a sentence; empty if it can."""
    if version != GRADER_VERSION:
        return f"runs version {GRADER_VERSION} of the grader instead of {version}; install the same version there."
    for needed in (path, seed_file):
        if not os.path.lexists(needed):
            return f"does not see {needed}; share that folder with it under the same name."
    try:
        _sandbox(level, trust, device)
    except SandboxError as error:
        return f"has no sandbox: {error}"
    return ""


@functools.cache
def _sandbox(level: str, trust: bool, device: str) -> Sandbox:
    return open_sandbox("auto" if level == "auto" else int(level), trust=trust, device=device)
