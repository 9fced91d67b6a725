"""Landlock: this process and its children open only the listed files, for good.

Numbers and structures are those of linux/landlock.h. Rights that the kernel's version does not know are left out.
"""

import os
import stat
import struct

from autograder.protocol.orders import Files
from autograder.worker.confinement import kernel

CREATE_RULESET, ADD_RULE, RESTRICT_SELF = 444, 445, 446
PATH_BENEATH = 1

EXECUTE, WRITE_FILE, READ_FILE, READ_DIR = 1 << 0, 1 << 1, 1 << 2, 1 << 3
MAKE_CHAR, MAKE_BLOCK = 1 << 6, 1 << 11
TRUNCATE, IOCTL_DEV = 1 << 14, 1 << 15
READING = EXECUTE | READ_FILE | READ_DIR
FILE_RIGHTS = EXECUTE | WRITE_FILE | READ_FILE | TRUNCATE | IOCTL_DEV
# How many rights over files each version knows.
KNOWN = {1: 13, 2: 14, 3: 15, 4: 15, 5: 16}
NETWORK_SINCE, SCOPES_SINCE = 4, 6
TCP, SCOPES = 0b11, 0b11
"""TCP: bind and connect. Scopes: abstract sockets and signals."""

# What a program reads of its own process; never `net`, which lists the machine's connections.
PROC_SELF = (
    *("auxv", "cmdline", "comm", "exe", "fd", "fdinfo", "limits", "maps", "smaps", "smaps_rollup"),
    *("stat", "statm", "status"),
)


def ruleset(files: Files) -> int:
    """Return a descriptor of the rules; call it before giving up rights, since opening a path may need them."""
    everything = (1 << KNOWN[min(files.abi, max(KNOWN))]) - 1
    handled = [everything]
    if files.abi >= NETWORK_SINCE:
        handled.append(TCP)
    if files.abi >= SCOPES_SINCE:
        handled.append(SCOPES)
    attributes = struct.pack(f"={len(handled)}Q", *handled)
    rules = kernel.syscall(CREATE_RULESET, attributes, len(attributes), 0)
    oneself = (f"/proc/self/{name}" for name in PROC_SELF)
    allowed = [
        *((path, READING) for path in (*files.readable, *oneself)),
        *((path, READ_DIR) for path in files.listable),
        *((path, everything & ~(MAKE_CHAR | MAKE_BLOCK | IOCTL_DEV)) for path in files.writable),
        *((path, READ_FILE | WRITE_FILE | TRUNCATE | IOCTL_DEV) for path in files.devices),
    ]
    for path, rights in allowed:
        _allow(rules, path, rights & everything)
    return rules


def restrict(rules: int) -> None:
    """Put the rules in force and close their descriptor."""
    kernel.syscall(RESTRICT_SELF, rules, 0)
    os.close(rules)


def _allow(rules: int, path: str, rights: int) -> None:
    try:
        place = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except (FileNotFoundError, PermissionError):
        return
    try:
        if not stat.S_ISDIR(os.fstat(place).st_mode):
            rights &= FILE_RIGHTS
        kernel.syscall(ADD_RULE, rules, PATH_BENEATH, struct.pack("=Qi", rights, place), 0)
    finally:
        os.close(place)
