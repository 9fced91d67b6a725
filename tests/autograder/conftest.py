"""What several folders of tests set up alike."""

import random
import sqlite3
from collections.abc import Iterator
from types import SimpleNamespace

import pytest

from autograder.classroom.batch import engine
from autograder.host import grading


@pytest.fixture(scope="session", autouse=True)
def seeds_of_gradings() -> Iterator[None]:
    """Let gradings and classes draw their seeds from Python's generator, which is seeded for each test."""
    with pytest.MonkeyPatch.context() as patch:
        for module in (grading, engine):
            patch.setattr(module, "secrets", SimpleNamespace(randbits=lambda bits: random.getrandbits(bits)))
        yield


@pytest.fixture(scope="module")
def quick_gradebooks() -> Iterator[None]:
    """Let gradebooks cost little: nobody pulls the plug, and a new one's version is read off here.

    nbgrader starts a process of seconds to learn that version; and SQLite would wait at each mark until it is on disk.
    """
    from alembic.script import ScriptDirectory
    from nbgrader.dbutil import ALEMBIC_DIR
    from sqlalchemy import Engine, event

    version = ScriptDirectory(ALEMBIC_DIR).get_current_head()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("nbgrader.api.get_alembic_version", lambda: version)
        event.listen(Engine, "connect", _write_lazily)
        yield
        event.remove(Engine, "connect", _write_lazily)


def _write_lazily(connection: sqlite3.Connection, _: object) -> None:
    connection.execute("PRAGMA synchronous=OFF")
