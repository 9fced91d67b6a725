"""What several folders of tests set up alike."""

import sqlite3
from collections.abc import Iterator

import pytest


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
