"""The steps of confinement in the only possible order: each step removes a right that earlier steps need.

Landlock lets this process and its children open only the listed files. Numbers and structures are those of
linux/landlock.h; rights that the kernel's version does not know are left out. If Landlock cannot block signals, a
filter does. It is written as single instructions: the process id is known only here, and there is no compiler.
"""

import errno
import fcntl
import os
import resource
import stat
import struct
import tempfile
from collections.abc import Mapping

from autograder.protocol.orders import Files, Orders
from autograder.worker.confinement import kernel, namespaces

CHANNEL = 3
CREATE_RULESET, ADD_RULE, RESTRICT_SELF = 444, 445, 446
PATH_BENEATH = 1
EXECUTE, WRITE_FILE, READ_FILE, READ_DIR = 1 << 0, 1 << 1, 1 << 2, 1 << 3
MAKE_CHAR, MAKE_BLOCK = 1 << 6, 1 << 11
TRUNCATE, IOCTL_DEV = 1 << 14, 1 << 15
READING = EXECUTE | READ_FILE | READ_DIR
FILE_RIGHTS = EXECUTE | WRITE_FILE | READ_FILE | TRUNCATE | IOCTL_DEV
# The number of access rights for files in each version.
KNOWN = {1: 13, 2: 14, 3: 15, 4: 15, 5: 16}
NETWORK_SINCE, SCOPES_SINCE = 4, 6
TCP, SCOPES = 0b11, 0b11
"""TCP: bind and connect. Scopes: abstract sockets and signals."""
# Entries that a program reads about its own process; never `net`, which lists the machine's connections.
PROC_SELF = (
    *("auxv", "cmdline", "comm", "exe", "fd", "fdinfo", "limits", "maps", "smaps", "smaps_rollup"),
    *("stat", "statm", "status"),
)
# linux/bpf_common.h and linux/seccomp.h; struct seccomp_data has the call's number at 0 and its arguments from 16 on.
LOAD, EQUAL, RETURN = 0x20, 0x15, 0x06
ALLOW, REFUSE = 0x7FFF0000, 0x00050000 | errno.EPERM
NUMBER_AT, FIRST_AT = 0, 16
BY_NUMBER = ("kill", "tgkill", "tkill", "rt_sigqueueinfo", "rt_tgsigqueueinfo")
OWN_GROUP = 0


def confine(orders: Orders) -> None:
    """Give up everything that `orders` does not grant; the process must have one thread."""
    os.environ.clear()
    os.environ.update(orders.variables)
    tempfile.tempdir = None  # computed again from the new variables
    if orders.mounts:
        namespaces.mount_worker_view(orders.mounts)
    os.chdir(orders.home)
    lower_limits(orders.rlimits)
    if not orders.confined:
        return
    rules = landlock_ruleset(orders.files) if orders.files else None
    kernel.give_up_capabilities()
    if orders.uid is not None:
        os.setgroups([])
        os.setresgid(orders.uid, orders.uid, orders.uid)
        os.setresuid(orders.uid, orders.uid, orders.uid)
    kernel.empty_capabilities()
    # After the change of user, this process may no longer read its own entries in /proc.
    kernel.prctl(kernel.PR_SET_DUMPABLE, 1)
    kernel.prctl(kernel.PR_SET_NO_NEW_PRIVS, 1)
    if rules is not None:
        restrict_files(rules)
    if orders.signal_calls:
        kernel.filter_system_calls(signal_filter(os.getpid(), orders.signal_calls))
    kernel.filter_system_calls(orders.seccomp)


def keep_descriptors(channel: int, output: int, *others: int) -> list[int]:
    """Make `channel` descriptor 3, `output` 1 and 2, /dev/null 0; close all others except `others`.

    Return the new numbers of `others`, from 4 on.
    """
    kept = [channel, *others]
    # Duplicated to high numbers first, so that no descriptor is overwritten while it is still needed.
    high = [os.dup(output), *(os.dup(each) for each in kept)]
    high = [_above(each, CHANNEL + len(kept)) for each in high]
    nothing = os.open("/dev/null", os.O_RDONLY)
    os.dup2(nothing, 0)
    for number in (1, 2):
        os.dup2(high[0], number)
    for place, number in enumerate(high[1:]):
        os.dup2(number, CHANNEL + place, inheritable=False)
    os.closerange(CHANNEL + len(kept), 1 << 20)
    return [CHANNEL + 1 + place for place in range(len(others))]


def lower_limits(rlimits: Mapping[str, int]) -> None:
    """Set soft and hard limits; a limit that is already lower stays."""
    for name, value in rlimits.items():
        which = getattr(resource, name)
        hard = resource.getrlimit(which)[1]
        lowest = value if hard == resource.RLIM_INFINITY else min(value, hard)
        resource.setrlimit(which, (lowest, lowest))


def _above(descriptor: int, lowest: int) -> int:
    return fcntl.fcntl(descriptor, fcntl.F_DUPFD_CLOEXEC, lowest)


def landlock_ruleset(files: Files) -> int:
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


def restrict_files(rules: int) -> None:
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


def signal_filter(pid: int, calls: Mapping[str, int]) -> bytes:
    """Return BPF that refuses each of `calls` unless it names `pid`, or for `kill` this process's own group.

    A call that takes a descriptor instead of a process id is always refused.
    """
    code = b""
    for name, number in calls.items():
        if name in BY_NUMBER:
            targets = [pid, OWN_GROUP] if name == "kill" else [pid]
            body = _unless(targets)
        else:
            body = instruction(RETURN, REFUSE)
        code += instruction(LOAD, NUMBER_AT)
        code += instruction(EQUAL, number, otherwise=len(body) // 8) + body
    return code + instruction(RETURN, ALLOW)


def _unless(targets: list[int]) -> bytes:
    """Refuse unless the lower half of the first argument is one of `targets`; the kernel uses only this half."""
    refuse, allow = instruction(RETURN, REFUSE), instruction(RETURN, ALLOW)
    compared = b"".join(instruction(EQUAL, target, then=len(targets) - place) for place, target in enumerate(targets))
    return instruction(LOAD, FIRST_AT) + compared + refuse + allow


def instruction(code: int, value: int, *, then: int = 0, otherwise: int = 0) -> bytes:
    """Return one instruction of BPF; `then` and `otherwise` say how many to skip."""
    return struct.pack("=HBBI", code, then, otherwise, value)
