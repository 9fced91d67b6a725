"""An append-only journal of gradings: what `append` returned for is never lost and never there twice.

    >>> with Journal(Path("work/journal.jsonl")) as journal:
    ...     if record.key not in journal:
    ...         journal.append(record)

One line is one record with its checksum, ``{"sha256":"…","record":{…}}``, forced to disk before `append`
returns. A crash can only leave an unfinished last line; the next writer cuts it off and keeps it beside the
journal in ``journal.jsonl.torn``. Any other damage is reported, not repaired: it means that a disk or a
person changed the file.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import threading
from collections.abc import Iterator
from pathlib import Path

from autograder.host.records import SubmissionRecord

Key = tuple[str, str, str, str]

_PREFIX = b'{"sha256":"'
_MIDDLE = b'","record":'
_HEX_DIGITS = 64


class JournalError(Exception):
    """The journal cannot be used; the message says in one sentence why and what to do."""


class Journal:
    """The journal at ``path``, opened by its one writer; made with its folder if it does not exist.

    Raises `JournalError` if another process is writing it or if a line is damaged.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.torn_bytes = 0  # length of the unfinished line that was cut off on opening
        self._records: dict[Key, SubmissionRecord] = {}
        self._append_lock = threading.Lock()
        path.parent.mkdir(parents=True, exist_ok=True)
        self._fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o600)
        try:
            self._lock()
            self._cut_torn_tail()
            self._records = {record.key: record for record in records_in(path)}
            _sync_folder(path.parent)
        except BaseException:
            os.close(self._fd)
            raise

    def __enter__(self) -> Journal:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def __contains__(self, key: Key) -> bool:
        return key in self._records

    def __iter__(self) -> Iterator[SubmissionRecord]:
        return iter(tuple(self._records.values()))

    def __len__(self) -> int:
        return len(self._records)

    def get(self, key: Key) -> SubmissionRecord | None:
        """The record under ``key``, or ``None`` if that submission is not graded yet."""
        return self._records.get(key)

    def append(self, record: SubmissionRecord) -> bool:
        """Write ``record`` durably; returns whether it was new (an existing key is left as it is)."""
        line = line_of(record)
        with self._append_lock:
            if record.key in self._records:
                return False
            self._write(line)
            self._records[record.key] = record
            return True

    def close(self) -> None:
        """Give the journal back; closing twice is fine."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1

    def _write(self, line: bytes) -> None:
        before = os.fstat(self._fd).st_size
        try:
            _write_all(self._fd, line)
            os.fsync(self._fd)
        except BaseException:  # half a line, on a full disk say, would damage the next one
            os.ftruncate(self._fd, before)
            raise

    def _lock(self) -> None:
        try:
            fcntl.flock(self._fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            sentence = f"{self.path} is being written by another grader; wait for it to end, then run again."
            raise JournalError(sentence) from None

    def _cut_torn_tail(self) -> None:
        data = self.path.read_bytes()
        whole = data.rfind(b"\n") + 1
        self.torn_bytes = len(data) - whole
        if self.torn_bytes:
            with self.path.with_name(self.path.name + ".torn").open("ab") as aside:
                aside.write(data[whole:] + b"\n")
                aside.flush()
                os.fsync(aside.fileno())
            os.ftruncate(self._fd, whole)
            os.fsync(self._fd)


def records_in(path: Path) -> Iterator[SubmissionRecord]:
    """The records of the journal at ``path``, oldest first, read without locking it.

    An unfinished last line is left out; a damaged one raises `JournalError` naming it.
    """
    if not path.exists():
        return
    for number, line in enumerate(path.read_bytes().split(b"\n")[:-1], start=1):
        yield _record_of(line, f"line {number} of {path}")


def line_of(record: SubmissionRecord) -> bytes:
    """The journal's line for ``record``, newline included."""
    # surrogatepass: a student's text may hold half a surrogate pair, no reason to refuse a record
    body = record.to_json().encode("utf-8", "surrogatepass")
    return _PREFIX + hashlib.sha256(body).hexdigest().encode() + _MIDDLE + body + b"}\n"


def _record_of(line: bytes, where: str) -> SubmissionRecord:
    start = len(_PREFIX) + _HEX_DIGITS + len(_MIDDLE)
    checksum, body = line[len(_PREFIX) : len(_PREFIX) + _HEX_DIGITS], line[start:-1]
    if hashlib.sha256(body).hexdigest().encode() != checksum:
        remedy = "delete that line and run again to grade that submission anew"
        raise JournalError(f"{where} is damaged, its checksum differs: {remedy}.")
    try:
        return SubmissionRecord.from_json(body.decode("utf-8", "surrogatepass"))
    except (ValueError, KeyError, TypeError) as error:
        sentence = f"{where} was not written by this grader ({error}): move the journal aside and run again."
        raise JournalError(sentence) from error


def _write_all(fd: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(fd, view) :]


def _sync_folder(folder: Path) -> None:
    fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)
