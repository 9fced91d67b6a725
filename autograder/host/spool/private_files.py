"""Files in folders that others can write to: read one within limits, and write one that a single other user can read.

Folders are open, and files are named in them. So whatever somebody puts in the place of a folder or of a path's part
changes nothing.
"""

import contextlib
import os
import secrets
import stat
import struct
from pathlib import Path

PART = "."  # begins the name of a file that is being written
_PATH_ONLY = getattr(os, "O_PATH", os.O_RDONLY)
_ACCESS_LIST = "system.posix_acl_access"
# of POSIX.1e access lists, as Linux stores them: a version, then tag, rights and user of each entry
_VERSION, _ENTRY = struct.pack("<I", 2), struct.Struct("<HHI")
_OWNER, _USER, _GROUP, _MASK, _OTHERS = 0x01, 0x02, 0x04, 0x10, 0x20
_READ, _READ_AND_WRITE, _NOBODY = 4, 6, 0xFFFFFFFF


class NotALetterError(Exception):
    """A file is no letter: not a regular file with one name, too large, or of other content."""


def opened_folder(path: Path, *, listed: bool = False) -> int:
    """Open a folder, never a link, for files in it; `listed` needs the right to list it."""
    flags = os.O_RDONLY if listed else _PATH_ONLY
    return os.open(path, flags | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)


def read_bounded(folder: int, name: str, most: int) -> tuple[bytes, int]:
    """Return the bytes of a file in an open folder, and its owner; raises `NotALetterError`, or `OSError`.

    A link is not followed and a pipe is not waited for. What is not a regular file is not even opened.
    """
    if not stat.S_ISREG(os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode):
        raise NotALetterError("it is not a regular file")
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
    with os.fdopen(os.open(name, flags, dir_fd=folder), "rb") as file:
        found = os.fstat(file.fileno())
        if not stat.S_ISREG(found.st_mode):
            raise NotALetterError("it is not a regular file")
        if found.st_nlink > 1:
            raise NotALetterError("it has a second name elsewhere")
        data = file.read(most + 1) if found.st_size <= most else b""
        if found.st_size > most or len(data) > most:  # it may grow while it is read
            raise NotALetterError(f"it has more than {most:,} bytes")
        return data, found.st_uid


def write_for(folder: int, name: str, data: bytes, reader: int) -> None:
    """Write a file into an open folder, readable by its owner and the user `reader`; it appears complete or not at all.

    Where the file system has no access lists, everybody may read it who knows its name. So the folder must not be
    listable by others, and the name not guessable.
    """
    part = f"{PART}{name}.{secrets.token_hex(4)}"
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    try:
        with os.fdopen(os.open(part, flags, 0o600, dir_fd=folder), "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
            _let_read(file.fileno(), reader)
        os.rename(part, name, src_dir_fd=folder, dst_dir_fd=folder)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(part, dir_fd=folder)
        raise


def _let_read(file: int, reader: int) -> None:
    if reader == os.geteuid():
        return
    entries = (
        (_OWNER, _READ_AND_WRITE, _NOBODY),
        (_USER, _READ, reader),
        (_GROUP, 0, _NOBODY),
        (_MASK, _READ, _NOBODY),
        (_OTHERS, 0, _NOBODY),
    )
    try:
        os.setxattr(file, _ACCESS_LIST, _VERSION + b"".join(_ENTRY.pack(*entry) for entry in entries))
    except (OSError, AttributeError):  # a network's or another system's files
        os.fchmod(file, 0o644)
