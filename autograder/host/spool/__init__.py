"""The folder of trials in the exchange: where its parts are, the letters in it, and files for one reader."""

from autograder.host.spool.letters import (
    LETTER_NAME,
    MAX_REPLY_BYTES,
    MAX_REQUEST_BYTES,
    TrialReply,
    TrialRequest,
    read_reply,
    read_request,
    reply_bytes,
    request_bytes,
)
from autograder.host.spool.places import Places, doubts
from autograder.host.spool.private_files import NotALetterError, opened_folder, read_bounded, write_for

__all__ = [
    "LETTER_NAME",
    "MAX_REPLY_BYTES",
    "MAX_REQUEST_BYTES",
    "NotALetterError",
    "Places",
    "TrialReply",
    "TrialRequest",
    "doubts",
    "opened_folder",
    "read_bounded",
    "read_reply",
    "read_request",
    "reply_bytes",
    "request_bytes",
    "write_for",
]
