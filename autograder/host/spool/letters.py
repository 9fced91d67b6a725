"""The two letters of a trial: a request with the text of an answer, and a reply with the record of its checks.

A trial checks one answer on the course's machine, before the deadline. A letter is a message of the protocol without
tensors, so both sides read it within the limits of `autograder.protocol.messages` and decode it strictly. A request
says nothing about who sent it: that is the owner of its file.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, is_dataclass
from typing import Annotated, Any, Literal, TypeVar, get_args, get_type_hints

from autograder.host.records import ExerciseRecord
from autograder.host.spool.private_files import NotALetterError
from autograder.protocol import ProtocolError, parse, serialise
from autograder.protocol.decoder import Within, decode

MAX_REQUEST_BYTES = 4 << 20  # as the body of a message
MAX_REPLY_BYTES = 4 << 20
MAX_ANSWER_CHARACTERS = 200_000  # as `autograder.host.source_text` reads
MAX_ANSWERS = 10
LETTER_NAME = re.compile(r"[0-9a-f]{32}")
"""The name of a letter, drawn by the sender: who does not know it cannot open the letter. A reply has the same name."""

Letter = TypeVar("Letter")


@dataclass(frozen=True)
class TrialRequest:
    """What a notebook sends: an exercise, and the text of each answer cell that it needs, by exercise."""

    exercise: Annotated[str, Within(1, 100)]
    answers: Annotated[Mapping[str, Annotated[str, Within(0, MAX_ANSWER_CHARACTERS)]], Within(1, MAX_ANSWERS)]
    form: Literal["fusion-course/trial/1"] = "fusion-course/trial/1"


@dataclass(frozen=True)
class TrialReply:
    """What comes back: the record of the visible checks, or a sentence that says why there is none."""

    sentence: Annotated[str, Within(0, 2_000)]
    record: ExerciseRecord | None = None
    form: Literal["fusion-course/trial-reply/1"] = "fusion-course/trial-reply/1"


def request_bytes(request: TrialRequest) -> bytes:
    """Return the file of a request."""
    return serialise(_plain(request, TrialRequest))


def reply_bytes(reply: TrialReply) -> bytes:
    """Return the file of a reply."""
    return serialise(_plain(reply, TrialReply))


def read_request(data: bytes) -> TrialRequest:
    """Return the request in a file; raises `NotALetterError` for anything else."""
    return _letter(data, TrialRequest)


def read_reply(data: bytes) -> TrialReply:
    """Return the reply in a file; raises `NotALetterError` for anything else."""
    return _letter(data, TrialReply)


def _letter(data: bytes, kind: type[Letter]) -> Letter:
    try:
        message = parse(data)
        if message.tensors:
            raise ProtocolError("a letter with tensors")
        return decode(message.body, kind)
    except (ProtocolError, ValueError) as error:  # ValueError: a record refuses numbers that cannot be
        raise NotALetterError(f"it holds {error}") from None


def _plain(value: Any, kind: Any) -> Any:
    """Return JSON for `value`, with a float where a field of its dataclass says so: a check may have whole points."""
    if kind is float:
        return float(value)
    if is_dataclass(value):
        return {name: _plain(getattr(value, name), hint) for name, hint in get_type_hints(type(value)).items()}
    if isinstance(value, tuple):
        return [_plain(item, get_args(kind)[0]) for item in value]
    if isinstance(value, Mapping):
        return {key: _plain(item, get_args(kind)[1]) for key, item in value.items()}
    return value
