"""Two students with accounts of their own, what they put into the exchange, and what they do there as themselves."""

import itertools
import os
import sys
import traceback
from collections.abc import Callable
from pathlib import Path

import pytest

from autograder.host.spool import Places, TrialRequest, request_bytes
from tests import skips

_NUMBERS = itertools.count(1)
ALICE, MALLORY = 70001, 70002
ACCOUNTS = {ALICE: "alice", MALLORY: "mallory"}
EXERCISE = "04_read_a_graph"
REQUEST = request_bytes(TrialRequest(EXERCISE, {EXERCISE: "def read_graph(rows):\n    return {}\n"}))
as_root = pytest.mark.skipif(os.geteuid() != 0, reason=f"{skips.ROOT}: to act as other users")


def put(places: Places, data: bytes = REQUEST, *, owner: int | None = None, name: str = "") -> str:
    """Put a letter into the exchange, as if `owner` had, and return its name."""
    path = places.inbound / (name or f"{next(_NUMBERS):032x}")
    path.write_bytes(data)
    if owner is not None:
        os.chown(path, owner, -1)
    return path.name


def names(folder: Path) -> set[str]:
    """Return the names of everything in a folder."""
    return {path.name for path in folder.iterdir()}


def doing_as(uid: int, act: Callable[[], object]) -> str:
    """Do something in a process of another user; return what it returned, or the name of its error."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.setgroups([])
            os.setresgid(uid, uid, uid)
            os.setresuid(uid, uid, uid)
            said = str(act())
        except BaseException as error:  # this process must not go on as a test
            said = type(error).__name__
            traceback.print_exc(file=sys.stderr)
        os.write(writing, said.encode())
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading, encoding="utf-8") as said_by_child:
        said = said_by_child.read()
    os.waitpid(child, 0)
    return said
