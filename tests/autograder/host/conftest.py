"""What several folders of tests set up alike."""

from collections.abc import Iterator

import pytest


@pytest.fixture(scope="module")
def quick_gradebooks() -> Iterator[None]:
    """Let nbgrader read off here which version a new gradebook has, for which it starts a process of seconds."""
    from alembic.script import ScriptDirectory
    from nbgrader.dbutil import ALEMBIC_DIR

    version = ScriptDirectory(ALEMBIC_DIR).get_current_head()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("nbgrader.api.get_alembic_version", lambda: version)
        yield
