"""One database engine for all the gradebooks that nbgrader opens during its steps.

nbgrader opens a gradebook a dozen times for each hand-in, each with an engine of its own, and it is the engine that
keeps the text of the statements compiled so far: every statement would be compiled anew each time. Here the engine is
kept. Its connections are not: closing a gradebook closes them, and the next one opens the database again.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator
from contextlib import contextmanager

from nbgrader import api
from sqlalchemy import Engine, create_engine

MOST_DATABASES = 4  # whose engines are kept; a process grades one course, rarely more


@contextmanager
def kept_engine() -> Iterator[None]:
    """Let `nbgrader.api.Gradebook` take the engine of the gradebook before, as long as the block lasts.

    >>> with kept_engine():
    ...     course.api.autograde("04_fx_capture", "ada")
    """
    # nbgrader hands its preprocessors the address of the database and nothing else, so an engine cannot be handed in
    before = api.create_engine
    api.create_engine = _engine
    try:
        yield
    finally:
        api.create_engine = before


@functools.lru_cache(MOST_DATABASES)
def _engine(url: str, *, echo: bool, future: bool) -> Engine:
    return create_engine(url, echo=echo, future=future)
