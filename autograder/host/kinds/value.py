"""Answers that are functions from plain data to plain data."""

from __future__ import annotations

from typing import Any

from autograder.host.channel import MalformedAnswerError
from autograder.host.session import Session


class ValueAnswer:
    """Asks the student's function one question at a time; what the host counts itself, it counts in ``clean``."""

    def __init__(self, session: Session, clean: Session | None = None) -> None:
        self._session, self._clean = session, clean

    @property
    def clean(self) -> Session:
        """A worker that never sees the student's code."""
        assert self._clean is not None, "every grading has one"
        return self._clean

    def ask(self, question: Any) -> Any:
        """The function's answer as plain data: None, bool, int, float, str, lists and dicts."""
        reply, _ = self._session.call({"question": question})
        if set(reply.body) != {"value"}:
            raise MalformedAnswerError("The worker sent a reply of another form.")
        return reply.body["value"]
