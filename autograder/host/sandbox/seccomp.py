"""The system calls that a worker may not make, compiled by libseccomp for this machine.

The list is short. It holds calls that reach other processes, change mounts or identity, or open large, rarely used
parts of the kernel. Calls that torch, a compiler and multiprocessing need stay allowed.
"""

import ctypes
import errno
import os
import socket
from collections.abc import Sequence
from functools import cache

from autograder.host.sandbox.levels import SandboxError

DENIED = (
    *("ptrace", "process_vm_readv", "process_vm_writev", "process_madvise", "pidfd_getfd", "kcmp"),
    *("mount", "umount2", "pivot_root", "chroot", "move_mount", "open_tree", "fsopen", "fsconfig", "fsmount", "fspick"),
    *("mount_setattr", "unshare", "setns", "open_by_handle_at", "name_to_handle_at"),
    *("keyctl", "add_key", "request_key", "bpf", "perf_event_open", "userfaultfd", "memfd_secret"),
    *("io_uring_setup", "io_uring_enter", "io_uring_register"),
    *("init_module", "finit_module", "delete_module", "kexec_load", "kexec_file_load", "reboot", "swapon", "swapoff"),
    *("acct", "quotactl", "quotactl_fd", "syslog", "fanotify_init", "lookup_dcookie", "iopl", "ioperm", "vhangup"),
    *("settimeofday", "clock_settime", "adjtimex", "clock_adjtime", "sethostname", "setdomainname"),
    # They tell which pages of a file are in the page cache, or drop them: a channel to the answer that is graded next.
    *("cachestat", "mincore", "fadvise64"),
    *("inotify_init", "inotify_init1"),
    "io_setup",  # the machine counts such queues, for everybody to read
)
# Memory that belongs to no process: a control group counts it, a watchdog cannot.
UNCOUNTED_MEMORY = ("memfd_create", "shmget", "msgget")
# Resources that a namespace would separate: named sockets, whose connections Landlock does not control, System V
# memory, queues and semaphores.
SHARED_RESOURCES = (
    *("socket", "connect", "bind", "listen", "accept", "accept4"),
    *("shmat", "shmctl", "msgsnd", "msgrcv", "msgctl", "semget", "semop", "semtimedop", "semctl"),
    *("mq_open", "mq_unlink"),
)
LISTENING = ("socket", "bind", "listen")  # of these, what the driver of a GPU calls
# Calls that the owner of a file may make without opening it for writing. Landlock does not control these calls.
PRIVILEGED = (
    *("chmod", "fchmod", "fchmodat", "fchmodat2", "chown", "fchown", "lchown", "fchownat"),
    *("utime", "utimes", "utimensat", "futimesat", "file_setattr"),
    *(
        "setxattr",
        "lsetxattr",
        "fsetxattr",
        "setxattrat",
        "removexattr",
        "lremovexattr",
        "fremovexattr",
        "removexattrat",
    ),
    *("migrate_pages", "move_pages", "process_mrelease", "truncate"),
)
# The position of the process id in a call's arguments. Id 0 is the caller; other ids are processes of the same user.
PROCESS_ARGUMENT = {
    **dict.fromkeys(("prlimit64", "sched_setaffinity", "sched_setscheduler", "sched_setparam", "sched_setattr"), 0),
    **dict.fromkeys(("setpriority", "ioprio_set"), 1),
}
SIGNALS = (
    *("kill", "tkill", "tgkill", "rt_sigqueueinfo", "rt_tgsigqueueinfo"),
    *("pidfd_open", "pidfd_send_signal"),
)

# linux/sched.h: NEWNS, NEWCGROUP, NEWUTS, NEWIPC, NEWUSER, NEWPID, NEWNET
CLONE_NEW = (0x20000, 0x2000000, 0x4000000, 0x8000000, 0x10000000, 0x20000000, 0x40000000)
TIOCSTI, TIOCLINUX = 0x5412, 0x541C
# linux/fs.h: flags, versions and project of an inode, in the forms of 64 and 32 bits. They stay on a file of the host.
INODE_IOCTLS = (0x40086602, 0x40046602, 0x40087602, 0x40047602, 0x401C5820)
# linux/fcntl.h: a lease stops whoever opens the file, and a notification tells who does.
F_SETLEASE, F_NOTIFY = 1024, 1026
# Locks on a file that several answers may read: setting and asking, of a process and of an open file.
F_LOCKS = (5, 6, 7, 36, 37, 38)
# linux/fs.h: a read that fails if the page cache lacks the page, and one that drops the page afterwards.
RWF_NOWAIT, RWF_DONTCACHE = 0x8, 0x80
MADV_COLD, MADV_PAGEOUT = 20, 21
PRIO_PROCESS, IOPRIO_WHO_PROCESS = 0, 1
# These set the process that gets a signal when a descriptor is ready: a signal without `kill`.
FIOSETOWN, SIOCSPGRP = 0x8901, 0x8902
F_SETOWN, F_SETSIG, F_SETOWN_EX = 8, 10, 15
PR_SET_DUMPABLE = 4
SOCK_TYPE_MASK, STREAM_TYPES = 0xF, (1, 5)

# seccomp.h of libseccomp
ALLOW, ERRNO = 0x7FFF0000, 0x00050000
NOT_EQUAL, MASKED_EQUAL = 1, 7


class _Comparison(ctypes.Structure):
    """`struct scmp_arg_cmp`: compare system call argument `arg`."""

    _fields_ = (("arg", ctypes.c_uint), ("op", ctypes.c_int), ("a", ctypes.c_uint64), ("b", ctypes.c_uint64))


class _Filter:
    """Build a filter that allows all calls without a rule, and kills the process for calls of another architecture."""

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
        """Answer the call with `error` if all comparisons hold; ignore a name that this machine does not have."""
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
        """Return the filter in the form that the kernel reads."""
        with os.fdopen(os.memfd_create("seccomp"), "rb") as file:
            if self._library.seccomp_export_bpf(self._context, file.fileno()) != 0:
                raise SandboxError("libseccomp could not write its filter.")
            self._library.seccomp_release(self._context)
            file.seek(0)
            return file.read()


@cache
def program(
    *, countable_memory_only: bool, without_namespaces: bool = False, same_user: bool = False, with_gpu: bool = False
) -> bytes:
    """Return the BPF program for a worker.

    `countable_memory_only` also refuses memory that belongs to no process. `without_namespaces` also refuses sockets,
    System V IPC and message queues, which a worker without namespaces shares with the whole machine.
    `same_user` also refuses calls that act on this user's files and processes. `with_gpu` allows a socket that listens,
    without which the driver finds no device.
    """
    rules = _Filter()
    for name in (*DENIED, *(UNCOUNTED_MEMORY if countable_memory_only else ())):
        rules.refuse(name)
    # A filter cannot read its flags, which lie in memory; the C library falls back on clone.
    rules.refuse("clone3", error=errno.ENOSYS)
    for flag in CLONE_NEW:
        rules.refuse("clone", _Comparison(0, MASKED_EQUAL, flag, flag))
    _refuse_values(rules, "ioctl", 1, (TIOCSTI, TIOCLINUX, *INODE_IOCTLS))
    _refuse_values(rules, "fcntl", 1, (F_SETLEASE, F_NOTIFY))
    for command in F_LOCKS:
        rules.refuse("fcntl", _Comparison(1, MASKED_EQUAL, 0xFFFFFFFF, command), error=errno.ENOLCK)
    _refuse_values(rules, "madvise", 2, (MADV_COLD, MADV_PAGEOUT))
    for flag in (RWF_NOWAIT, RWF_DONTCACHE):
        rules.refuse("preadv2", _Comparison(5, MASKED_EQUAL, flag, flag))
    # A group of processes or a whole user is named by 0 too.
    rules.refuse("setpriority", _Comparison(0, NOT_EQUAL, PRIO_PROCESS, 0))
    rules.refuse("ioprio_set", _Comparison(0, NOT_EQUAL, IOPRIO_WHO_PROCESS, 0))
    # The C library and Python's package filelock go on without locks, or with a file in place of one.
    rules.refuse("flock", error=errno.ENOSYS)
    if without_namespaces:
        _refuse_shared_resources(rules, with_gpu=with_gpu)
    rules.refuse("socket", _Comparison(0, NOT_EQUAL, int(socket.AF_UNIX), 0))
    if same_user:
        for name in PRIVILEGED:
            rules.refuse(name)
        for name, place in PROCESS_ARGUMENT.items():
            rules.refuse(name, _Comparison(place, NOT_EQUAL, 0, 0))
    return rules.program()


def numbers(names: Sequence[str]) -> dict[str, int]:
    """Return the numbers of these calls on this machine, without calls that it lacks."""
    library = ctypes.CDLL("libseccomp.so.2")
    resolved = {name: library.seccomp_syscall_resolve_name(name.encode()) for name in names}
    return {name: number for name, number in resolved.items() if number >= 0}


def _refuse_shared_resources(rules: _Filter, *, with_gpu: bool) -> None:
    """Refuse calls that reach others without opening a file; connected pairs of stream sockets stay allowed.

    The driver of a GPU makes a stream socket and listens on it. The worker may do this too. It can neither connect nor
    accept.
    """
    for name in SHARED_RESOURCES:
        if not (with_gpu and name in LISTENING):
            rules.refuse(name)
    for kind in set(range(SOCK_TYPE_MASK + 1)) - set(STREAM_TYPES):
        for name in ("socketpair", "socket"):
            rules.refuse(name, _Comparison(1, MASKED_EQUAL, SOCK_TYPE_MASK, kind))
    _refuse_values(rules, "fcntl", 1, (F_SETOWN, F_SETSIG, F_SETOWN_EX))
    _refuse_values(rules, "ioctl", 1, (FIOSETOWN, SIOCSPGRP))
    # Otherwise a worker could hide its memory from the watchdog.
    _refuse_values(rules, "prctl", 0, (PR_SET_DUMPABLE,))


def _refuse_values(rules: _Filter, name: str, place: int, values: Sequence[int]) -> None:
    for value in values:
        rules.refuse(name, _Comparison(place, MASKED_EQUAL, 0xFFFFFFFF, value))
