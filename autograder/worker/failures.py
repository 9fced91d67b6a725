"""Turn an exception of an answer into a few plain facts for its author."""

from __future__ import annotations

import traceback
from typing import Any

MAX_MESSAGE_CHARACTERS = 1000


def describe(error: BaseException) -> dict[str, Any]:
    """The exception's type, message and the innermost line of the answer that was running.

    ``part`` is the cell's name in angle brackets, ``line`` its line from 1, ``text`` that line; empty where unknown.
    """
    if isinstance(error, SyntaxError):
        return _facts(error, error.msg or "", error.filename or "", error.lineno or 0, error.text or "")
    frames = [f for f in traceback.extract_tb(error.__traceback__) if f.filename.startswith("<")]
    mine = [f for f in frames if f.filename.startswith(("<answer", "<setup"))]
    last = mine[-1] if mine else None
    try:
        message = str(error)
    except Exception:
        message = "its message cannot be shown"
    return _facts(
        error,
        message,
        last.filename if last else "",
        (last.lineno or 0) if last else 0,
        (last.line or "") if last else "",
    )


def _facts(error: BaseException, message: str, part: str, line: int, text: str) -> dict[str, Any]:
    return {
        "type": type(error).__name__,
        "message": message[:MAX_MESSAGE_CHARACTERS],
        "part": part[:100],
        "line": int(line),
        "text": text.strip()[:200],
    }
