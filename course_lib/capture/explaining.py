"""Why a capture failed, in words, and what to try."""

import re

from torch import nn

from course_lib.capture.causes import CAUSES, UNKNOWN, Cause
from course_lib.capture.source import SourceLine, line_in_text, line_of_error
from course_lib.errors import CaptureError


def name_of(program: object) -> str:
    """Return what to call a program in a sentence."""
    if isinstance(program, nn.Module):
        return type(program).__name__
    return str(getattr(program, "__name__", "the program"))


def explain_failure(mode: str, name: str, error: Exception) -> CaptureError:
    """Return the error to raise when capturing the program called `name` in this mode failed with `error`."""
    cause, line = _cause(mode, error), _line(mode, error)
    return CaptureError(
        f"{mode} could not capture {name}" + (f" at {line}" if line else "") + f": {cause.why}. {cause.advice} "
        f"({type(error).__name__}: {' '.join(str(error).split())[:160]})"
    )


def reason_in_short(mode: str, refusal: CaptureError) -> str:
    """Return why a capture was refused, in one sentence without advice."""
    error = refusal.__cause__
    if not isinstance(error, Exception):
        return str(refusal)
    why, line = _cause(mode, error).why, _line(mode, error)
    return f"{why[0].upper()}{why[1:]}" + (f" ({line})." if line else ".")


def _cause(mode: str, error: Exception) -> Cause:
    said = f"{type(error).__name__}: {error}" if mode != "fx" else str(error)
    return next((cause for cause in CAUSES[mode] if re.search(cause.pattern, said)), UNKNOWN[mode])


def _line(mode: str, error: Exception) -> SourceLine | None:
    # TorchScript and Dynamo name the line in their message; the others fail inside the program's own frames.
    return (line_in_text(str(error)) if mode in ("script", "dynamo") else None) or line_of_error(error)
