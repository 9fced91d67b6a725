"""Answers that are functions from plain data to plain data."""

from typing import Any

from autograder.host.session import Session
from autograder.protocol import Json
from autograder.protocol.requests.answers import Ask


class ValueAnswer:
    """Ask the student's function one question at a time; the host makes its own counts in `clean`."""

    def __init__(self, session: Session, clean: Session | None = None) -> None:
        self._session, self._clean = session, clean

    @property
    def clean(self) -> Session:
        """Return a worker that never sees the student's code."""
        assert self._clean is not None, "every grading has one"
        return self._clean

    def ask(self, question: Json, *keys: str) -> Json:
        """Return the function's answer as plain data: None, bool, int, float, str, lists and dicts.

        Of a dict only the entries called `keys` are returned, if there are any, so that another entry, which is no
        plain data, costs its own check only.
        """
        reply, _ = self._session.call(Ask(question, keys))
        return reply.body.value


def shortened(value: Any, most: int = 160) -> str:
    """Return the `repr` of a value, cut to `most` characters for a message."""
    text = repr(value)
    return text if len(text) <= most else text[: most - 3] + "..."
