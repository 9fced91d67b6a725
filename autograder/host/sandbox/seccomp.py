"""The system calls a worker may not make, compiled by libseccomp for this machine.

The list is short on purpose: what reaches other processes, changes what is mounted or who one is, or opens large rarely
used parts of the kernel. Everything that torch, a compiler and multiprocessing need stays allowed.
"""

from __future__ import annotations

import ctypes
import errno
import os
import socket
from functools import cache

from autograder.host.sandbox.errors import SandboxError

DENIED = (
    *("ptrace", "process_vm_readv", "process_vm_writev", "process_madvise", "pidfd_getfd", "kcmp"),
    *("mount", "umount2", "pivot_root", "chroot", "move_mount", "open_tree", "fsopen", "fsconfig", "fsmount", "fspick"),
    *("mount_setattr", "unshare", "setns", "open_by_handle_at", "name_to_handle_at"),
    *("keyctl", "add_key", "request_key", "bpf", "perf_event_open", "userfaultfd", "memfd_secret"),
    *("io_uring_setup", "io_uring_enter", "io_uring_register"),
    *("init_module", "finit_module", "delete_module", "kexec_load", "kexec_file_load", "reboot", "swapon", "swapoff"),
    *("acct", "quotactl", "quotactl_fd", "syslog", "fanotify_init", "lookup_dcookie", "iopl", "ioperm", "vhangup"),
    *("settimeofday", "clock_settime", "adjtimex", "clock_adjtime", "sethostname", "setdomainname"),
)
# Memory that belongs to no process, which a watchdog cannot count; a cgroup can.
UNCOUNTED = ("memfd_create", "shmget", "msgget")

# linux/sched.h: NEWNS, NEWCGROUP, NEWUTS, NEWIPC, NEWUSER, NEWPID, NEWNET
CLONE_NEW = (0x20000, 0x2000000, 0x4000000, 0x8000000, 0x10000000, 0x20000000, 0x40000000)
TIOCSTI, TIOCLINUX = 0x5412, 0x541C

# seccomp.h of libseccomp
ALLOW, ERRNO = 0x7FFF0000, 0x00050000
NOT_EQUAL, MASKED_EQUAL = 1, 7


class _Comparison(ctypes.Structure):
    """``struct scmp_arg_cmp``: compare system call argument ``arg``."""

    _fields_ = (("arg", ctypes.c_uint), ("op", ctypes.c_int), ("a", ctypes.c_uint64), ("b", ctypes.c_uint64))


class _Filter:
    """A filter under construction; allows what no rule refuses, and kills calls of another architecture."""

    def __init__(self) -> None:
        try:
            self._library = ctypes.CDLL("libseccomp.so.2", use_errno=True)
        except OSError:
            raise SandboxError(
                "The sandbox needs libseccomp, which is missing; install it with `apt-get install libseccomp2`."
            ) from None
        self._library.seccomp_init.restype = ctypes.c_void_p
        self._context = ctypes.c_void_p(self._library.seccomp_init(ctypes.c_uint32(ALLOW)))

    def refuse(self, name: str, *comparisons: _Comparison, error: int = errno.EPERM) -> None:
        """Answer the call with ``error`` if all comparisons hold; a name this machine lacks is passed over."""
        number = self._library.seccomp_syscall_resolve_name(name.encode())
        if number < 0:
            return
        array = (_Comparison * len(comparisons))(*comparisons)
        added = self._library.seccomp_rule_add_array(
            self._context, ctypes.c_uint32(ERRNO | error), number, len(comparisons), array
        )
        if added != 0:
            raise SandboxError(f"libseccomp refused the rule for {name} ({os.strerror(-added)}).")

    def program(self) -> bytes:
        """Return the filter as the kernel reads it."""
        with os.fdopen(os.memfd_create("seccomp"), "rb") as file:
            if self._library.seccomp_export_bpf(self._context, file.fileno()) != 0:
                raise SandboxError("libseccomp could not write its filter.")
            self._library.seccomp_release(self._context)
            file.seek(0)
            return file.read()


@cache
def program(*, countable_memory_only: bool) -> bytes:
    """Return the BPF program; ``countable_memory_only`` also refuses memory that belongs to no process."""
    rules = _Filter()
    for name in (*DENIED, *(UNCOUNTED if countable_memory_only else ())):
        rules.refuse(name)
    # Its flags lie in memory, where a filter cannot look; the C library falls back on clone.
    rules.refuse("clone3", error=errno.ENOSYS)
    for flag in CLONE_NEW:
        rules.refuse("clone", _Comparison(0, MASKED_EQUAL, flag, flag))
    for request in (TIOCSTI, TIOCLINUX):
        rules.refuse("ioctl", _Comparison(1, MASKED_EQUAL, 0xFFFFFFFF, request))
    rules.refuse("socket", _Comparison(0, NOT_EQUAL, int(socket.AF_UNIX), 0))
    return rules.program()
