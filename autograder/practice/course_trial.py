"""Send an answer to the course's machine for a trial, and wait for the reply.

The way there is nbgrader's exchange folder: a request is a file in it, a reply another one. Nothing listens on a
network, and the instructor's command that works requests off is not installed here.
"""

import contextlib
import os
import secrets
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Self

from autograder.host.spool import (
    MAX_REPLY_BYTES,
    NotALetterError,
    Places,
    TrialReply,
    TrialRequest,
    doubts,
    opened_folder,
    read_bounded,
    read_reply,
    read_request,
    request_bytes,
    write_for,
)

EXCHANGE = "COURSE_EXCHANGE"  # the same variable names the folder to the instructor's commands
COURSE = "fusion-course"
CONFIG = "nbgrader_config.py"
SILENT_S = 30.0  # a server gives a sign every few seconds; files of a network may be seen later
WAIT_S = 300.0
POLL_S = 0.5
TOLD_S = 5.0  # before the student is told what the cell waits for


class NoTrialError(Exception):
    """There is no result of a trial; the message is a sentence for the student."""


class CourseTrial:
    """One trial of an answer: sent at the start of a `with` block, and taken back at its end.

    >>> with CourseTrial("05_bias_silu_pass", answers) as trial:
    ...     reply = trial.wait()

    Nothing raises before `wait`, so that an answer is checked here whatever becomes of its trial.
    """

    def __init__(self, exercise: str, answers: Mapping[str, str]) -> None:
        self._request = TrialRequest(exercise, answers)
        self._name = secrets.token_hex(16)
        self._places: Places | None = None
        self._failure = ""
        self._sign = 0

    def __enter__(self) -> Self:
        try:
            self._send()
        except NoTrialError as error:
            self._failure = str(error)
        except OSError as error:
            self._failure = f"The trial could not be put into the exchange folder ({error.strerror or error})."
        return self

    def __exit__(self, *error: object) -> None:
        if self._places is not None and not self._failure:
            with contextlib.suppress(OSError):  # the server has taken it
                (self._places.inbound / self._name).unlink()

    def wait(self) -> TrialReply:
        """Return the reply; raises `NoTrialError` with why there is none, after `WAIT_S` seconds at the latest."""
        if self._failure or self._places is None:
            raise NoTrialError(self._failure)
        try:
            with _folder(self._places.replies) as replies:
                return self._awaited(self._places, replies)
        except OSError as error:
            raise NoTrialError(f"The exchange folder cannot be read now ({error.strerror or error}).") from None

    def _awaited(self, places: Places, replies: int) -> TrialReply:
        started = seen = time.monotonic()
        told = False
        while time.monotonic() - started < WAIT_S:
            reply = self._reply(replies)
            if reply is not None:
                return reply
            if not told and time.monotonic() - started > TOLD_S:
                print(f"Waiting for the course's machine, {WAIT_S:.0f} seconds at most.", flush=True)
                told = True
            sign = _time_of(places.serving)
            if sign != self._sign:
                self._sign, seen = sign, time.monotonic()
            elif time.monotonic() - seen > SILENT_S:
                raise NoTrialError(
                    f"The course's machine takes no trials now: no sign of it for {SILENT_S:.0f} seconds."
                )
            time.sleep(POLL_S)
        raise NoTrialError(f"The course's machine is busy: no result within {WAIT_S:.0f} seconds; try again later.")

    def _send(self) -> None:
        places = exchange_places()
        data = request_bytes(self._request)
        try:
            read_request(data)
        except NotALetterError as error:
            raise NoTrialError(f"The answer cannot be sent: {error}.") from None
        try:
            doubt = next(doubts(places), "")
        except FileNotFoundError:
            raise NoTrialError(f"The course takes no trials: nobody has made the folder {places.trials}.") from None
        if doubt:
            raise NoTrialError(f"The trial was not sent, because others could read it: {doubt}. Tell your instructor.")
        self._sign = _time_of(places.serving)
        with _folder(places.inbound) as inbound:
            write_for(inbound, self._name, data, places.inbound.stat().st_uid)
        self._places = places

    def _reply(self, replies: int) -> TrialReply | None:
        try:
            reply = read_reply(read_bounded(replies, self._name, MAX_REPLY_BYTES)[0])
        except FileNotFoundError:
            return None
        except NotALetterError as error:
            raise NoTrialError(f"The reply of the course's machine cannot be read: {error}.") from None
        if reply.record is None:
            raise NoTrialError(reply.sentence)
        if reply.record.id != self._request.exercise:
            raise NoTrialError("The reply of the course's machine is about another exercise.")
        return reply


def exchange_places() -> Places:
    """Return where the course's trials are, as nbgrader is configured here; raises `NoTrialError`."""
    root, course = os.environ.get(EXCHANGE, ""), COURSE
    if not root:
        settings = _settings()
        root, course = str(settings.get("root", "")), str(settings.get("course", COURSE))
    if not root:
        raise NoTrialError(f"This machine knows no exchange folder of a course: no {CONFIG} names one.")
    return Places(Path(root), course)


def _settings() -> Mapping[str, Any]:
    """Return the exchange and the course of nbgrader's configuration files; the first file that has one counts."""
    from jupyter_core.paths import jupyter_config_path
    from traitlets.config.loader import PyFileConfigLoader

    found: dict[str, Any] = {}
    for folder in (str(Path.cwd()), *jupyter_config_path()):
        if not (Path(folder) / CONFIG).is_file():
            continue
        try:
            config = PyFileConfigLoader(CONFIG, path=folder).load_config()
        except Exception as error:  # the file is a program, and may raise anything
            raise NoTrialError(f"{CONFIG} in {folder} cannot be read ({type(error).__name__}: {error}).") from None
        for name, value in (("root", config.Exchange.get("root")), ("course", config.CourseDirectory.get("course_id"))):
            if isinstance(value, str):
                found.setdefault(name, value)
    return found


@contextlib.contextmanager
def _folder(path: Path) -> Iterator[int]:
    opened = opened_folder(path)
    try:
        yield opened
    finally:
        os.close(opened)


def _time_of(path: Path) -> int:
    """Return the time of a file's last change, or 0; opened, since a network's file system then asks for it anew."""
    try:
        opened = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return 0
    try:
        return os.fstat(opened).st_mtime_ns
    finally:
        os.close(opened)
