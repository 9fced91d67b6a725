"""Keep an append-only journal of records: a record that `append` has written is never lost and never duplicated.

    >>> with Journal(Path("work/journal.jsonl")) as journal:
    ...     if hand_in.key not in journal:
    ...         journal.append(record)

One line is one record with its checksum, `{"sha256":"…","record":{…}}`, and `append` returns once it is on disk. A
crash can only leave an unfinished last line. The next writer cuts it off and keeps it beside the journal in
`journal.jsonl.torn`. An empty line says nothing and is skipped. Any other damage is reported, not repaired: it means
that a disk or a person changed the file.

A hand-in has one record for each version of its exercises that it was graded with. The last one counts, and the others
are its history. Of two lines in a row with the same version the first counts, as for `append`.

The journal is not an SQLite file, because the machines of a cluster may share its folder over a network, where SQLite's
write-ahead log does not work. A process reads each line once and stores its offset, to find a record by its key.
"""

import fcntl
import functools
import hashlib
import os
import stat
import threading
from collections.abc import Iterator
from pathlib import Path

from autograder.classroom.status import CommandError
from autograder.host.records import SubmissionRecord

Key = tuple[str, str, str]  # assignment, student, digest of the file: a hand-in
RecordKey = tuple[str, str, str, str]  # and the digest of the versions that it was graded with

_PREFIX = b'{"sha256":"'
_MIDDLE = b'","record":'
_HEX_DIGITS = 64
_MOST_INDEXES = 8  # journals whose index a process caches; it usually grades one course


class JournalError(CommandError):
    """The journal cannot be used; the message says in one sentence why and what to do."""


class Journal:
    """The journal at `path`, opened by its only writer; file and folder are created if they do not exist.

    Raises `JournalError` if another process is writing it or if a line is damaged.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.torn_bytes = 0  # length of the unfinished line that was cut off on opening
        self._append_lock = threading.Lock()
        self._fd = _opened(path)
        try:
            self._lock()
            self._index = _index_of(path.absolute())
            self._index.extend()
            self._cut_torn_tail()
            _sync_folder(path.parent)
        except BaseException:
            os.close(self._fd)
            raise

    def __enter__(self) -> "Journal":
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def __contains__(self, key: Key) -> bool:
        return key in self._index.places

    def __iter__(self) -> Iterator[SubmissionRecord]:
        return records_in(self.path)

    def __len__(self) -> int:
        return len(self._index.places)

    def get(self, key: Key) -> SubmissionRecord | None:
        """Return the last record of the hand-in `key`, or `None` if it is not graded yet."""
        return self._index.get(key)

    def append(self, record: SubmissionRecord) -> bool:
        """Write `record` to disk, and return False if it has the key of the hand-in's last record, which stays."""
        line = line_of(record)
        with self._append_lock:
            if self._index.last(record.key) == record.key:
                return False
            self._write(line)
            self._index.written(record.key, len(line))
            return True

    def close(self) -> None:
        """Close the journal; a second call has no effect."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1

    def _write(self, line: bytes) -> None:
        before = os.fstat(self._fd).st_size
        try:
            _write_all(self._fd, line)
            os.fsync(self._fd)
        except BaseException:  # half a line, e.g. after a full disk, would damage the next line
            os.ftruncate(self._fd, before)
            raise

    def _lock(self) -> None:
        try:
            fcntl.flock(self._fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            sentence = f"{self.path} is being written by another grader; wait for it to end, then run again."
            raise JournalError(sentence) from None

    def _cut_torn_tail(self) -> None:
        whole = self._index.end
        self.torn_bytes = os.fstat(self._fd).st_size - whole
        if self.torn_bytes:
            with self.path.with_name(self.path.name + ".torn").open("ab") as kept:
                kept.write(os.pread(self._fd, self.torn_bytes, whole) + b"\n")
                kept.flush()
                os.fsync(kept.fileno())
            os.ftruncate(self._fd, whole)
            os.fsync(self._fd)


def _opened(path: Path) -> int:
    """Open or create the journal's file; raises `JournalError` for anything but a regular file."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_NONBLOCK, 0o600)
    except OSError as error:
        if path.is_dir():
            raise JournalError(f"{path} is a folder, not a journal: move it aside and run again.") from None
        raise JournalError(f"{path} cannot be opened: {error.strerror}.") from error
    if not stat.S_ISREG(os.fstat(fd).st_mode):
        os.close(fd)
        raise JournalError(f"{path} is not a regular file: move it aside and run again.")
    return fd


class _Index:
    """The offset of each record in one journal; a process reads and checks each line once."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._lock = threading.RLock()
        self._forget()

    def _forget(self) -> None:
        self.places: dict[Key, tuple[int, int, RecordKey]] = {}  # offset, length and key of a hand-in's last record
        self.end = self._lines = 0  # end and number of the complete lines read so far
        self._stamp = (0, 0, 0)  # of the file when it was last read or written

    def get(self, key: Key) -> SubmissionRecord | None:
        """Return the record under `key`, or `None`; raises `JournalError` if a line that must be read is damaged."""
        with self._lock:
            record = self._read(key)
            if record is None:
                self.extend()  # another process may have written it since
                record = self._read(key)
            return record

    def extend(self) -> None:
        """Read the file again if another process or a person has changed it."""
        with self._lock:
            if self._stamp_now() == self._stamp:
                return
            self._forget()
            if not self._path.is_file():
                return
            with self._path.open("rb") as file:
                stamp = self._stamp_now()
                for line in file:
                    if line.endswith(b"\n"):
                        where = f"line {self._lines + 1} of {self._path}"
                        self._add(_record_of(line, where).key if line.strip() else None, len(line))
            self._stamp = stamp

    def written(self, key: RecordKey, length: int) -> None:
        """Add a record that this process has appended under `key` to the index."""
        with self._lock:
            self._add(key, length)
            self._stamp = self._stamp_now()

    def last(self, key: RecordKey) -> RecordKey | None:
        """Return the key of the last record of the same hand-in."""
        place = self.places.get(key[:3])
        return place[2] if place else None

    def _add(self, key: RecordKey | None, length: int) -> None:
        """Add the next line, under its record's key; an empty line has none."""
        if key is not None and self.last(key) != key:
            self.places[key[:3]] = (self.end, length, key)
        self.end += length
        self._lines += 1

    def _stamp_now(self) -> tuple[int, int, int]:
        try:
            found = self._path.stat()
        except FileNotFoundError:
            return (0, 0, 0)
        return (found.st_ino, found.st_size, found.st_mtime_ns)

    def _read(self, key: Key) -> SubmissionRecord | None:
        """Return a known record; clear the index if its line has changed, since then the file was edited."""
        if key not in self.places:
            return None
        offset, length, expected = self.places[key]
        line = self._line(offset, length)
        record = _record_of(line, str(self._path)) if _is_whole(line) else None
        if record is None or record.key != expected:
            self._forget()
            return None
        return record

    def _line(self, offset: int, length: int) -> bytes:
        try:
            with self._path.open("rb") as file:
                file.seek(offset)
                return file.read(length)
        except FileNotFoundError:
            return b""


@functools.lru_cache(_MOST_INDEXES)
def _index_of(path: Path) -> _Index:
    return _Index(path)


def find_record(path: Path, key: Key) -> SubmissionRecord | None:
    """Return the last record of the hand-in `key` in the journal at `path`, without locking it, or `None`."""
    return _index_of(path.absolute()).get(key)


def records_in(path: Path) -> Iterator[SubmissionRecord]:
    """Yield the records of the journal at `path`, oldest first, without locking it.

    An unfinished last line, empty lines, and lines that repeat the last record of a hand-in are left out; a damaged one
    raises `JournalError` naming it.
    """
    if not path.is_file():
        return
    last: dict[Key, RecordKey] = {}
    with path.open("rb") as file:
        for number, line in enumerate(file, start=1):
            if line.endswith(b"\n") and line.strip():
                record = _record_of(line, f"line {number} of {path}")
                key = record.key
                if last.get(key[:3]) != key:
                    last[key[:3]] = key
                    yield record


def line_of(record: SubmissionRecord) -> bytes:
    """Return the journal's line for `record`, newline included."""
    # surrogatepass, because a student's text may contain half a surrogate pair
    body = record.to_json().encode("utf-8", "surrogatepass")
    return _PREFIX + hashlib.sha256(body).hexdigest().encode() + _MIDDLE + body + b"}\n"


def _body_of(line: bytes) -> bytes:
    return line[len(_PREFIX) + _HEX_DIGITS + len(_MIDDLE) : -2]


def _is_whole(line: bytes) -> bool:
    """Return whether `line` ends with a newline and contains the checksum of its record."""
    checksum = line[len(_PREFIX) : len(_PREFIX) + _HEX_DIGITS]
    return line.endswith(b"\n") and hashlib.sha256(_body_of(line)).hexdigest().encode() == checksum


def _record_of(line: bytes, where: str) -> SubmissionRecord:
    if not _is_whole(line):
        remedy = "delete that line and run again to grade that submission anew"
        raise JournalError(f"{where} is damaged, its checksum differs: {remedy}.")
    try:
        return SubmissionRecord.from_json(_body_of(line).decode("utf-8", "surrogatepass"))
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
