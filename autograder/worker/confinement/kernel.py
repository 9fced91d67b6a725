"""System calls for which Python has no function; each raises `OSError` like Python's own."""

import ctypes
import os
import struct

_LIBRARY = ctypes.CDLL(None, use_errno=True)

# linux/prctl.h
PR_SET_PDEATHSIG, PR_SET_DUMPABLE, PR_SET_SECCOMP, PR_CAPBSET_DROP = 1, 4, 22, 24
PR_SET_CHILD_SUBREAPER, PR_SET_NO_NEW_PRIVS, PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL = 36, 38, 47, 4
SECCOMP_MODE_FILTER = 2
# linux/sched.h
CLONE_NEWNS, CLONE_NEWCGROUP, CLONE_NEWUTS, CLONE_NEWIPC = 0x20000, 0x2000000, 0x4000000, 0x8000000
CLONE_NEWUSER, CLONE_NEWPID, CLONE_NEWNET = 0x10000000, 0x20000000, 0x40000000
# linux/mount.h and sys/mount.h
MS_RDONLY, MS_NOSUID, MS_NODEV, MS_NOEXEC, MS_REMOUNT, MS_BIND = 1, 2, 4, 8, 32, 4096
MS_REC, MS_PRIVATE, MNT_DETACH = 16384, 1 << 18, 2
# asm-generic/mman-common.h, from Linux 6.1 on
MADV_COLLAPSE = 25
# linux/capability.h: version 3 of the structures, two words of 32 capabilities each
_CAPABILITY_VERSION, _CAPABILITIES = 0x20080522, 64


def prctl(option: int, argument: int | ctypes.c_void_p = 0, *more: int | ctypes.c_void_p) -> None:
    """Change a property of this process."""
    rest = [*more, 0, 0, 0][:3]
    _check(_LIBRARY.prctl(option, *(_word(each) for each in (argument, *rest))), f"prctl {option}")


def unshare(flags: int) -> None:
    """Leave the parent's namespaces."""
    _check(_LIBRARY.unshare(flags), "unshare")


def mount(source: str, target: str, kind: str = "", flags: int = 0, data: str = "") -> None:
    """Mount a file system or a folder on `target`."""
    texts = [text.encode() if text else None for text in (source, target, kind)]
    _check(_LIBRARY.mount(*texts, ctypes.c_ulong(flags), data.encode() if data else None), f"mount {target}")


def unmount(target: str) -> None:
    """Remove the mount on `target` at once."""
    _check(_LIBRARY.umount2(target.encode(), MNT_DETACH), f"umount {target}")


def madvise(address: int, length: int, advice: int) -> None:
    """Advise the kernel on `length` bytes of this process's memory."""
    pointer, size = ctypes.c_void_p(address), ctypes.c_size_t(length)
    _check(_LIBRARY.madvise(pointer, size, advice), f"madvise {advice}")


def syscall(number: int, *arguments: object) -> int:
    """Make a system call by its number and return its result."""
    words = [_word(each) if isinstance(each, int) else each for each in arguments]
    return _check(_LIBRARY.syscall(ctypes.c_long(number), *words), f"system call {number}")


def give_up_capabilities() -> None:
    """Remove all capabilities from the bounding and ambient sets, so that no child can gain one."""
    for capability in range(_CAPABILITIES):
        # The kernel refuses this only where the process has no capabilities.
        _LIBRARY.prctl(PR_CAPBSET_DROP, ctypes.c_ulong(capability), 0, 0, 0)
    _LIBRARY.prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0)


def empty_capabilities() -> None:
    """Empty the capability sets in force; call this last, since earlier steps need some capabilities."""
    header, empty = struct.pack("Ii", _CAPABILITY_VERSION, 0), bytes(24)
    _check(_LIBRARY.capset(header, empty), "capset")


def filter_system_calls(program: bytes) -> None:
    """Apply a BPF program to every later system call of this process and its children."""
    count = len(program) // 8
    code = ctypes.create_string_buffer(program, len(program))
    # struct sock_fprog: a 16-bit count, padding, a pointer
    header = ctypes.create_string_buffer(struct.pack("HxxxxxxP", count, ctypes.addressof(code)))
    prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, ctypes.c_void_p(ctypes.addressof(header)))


def _word(value: int | ctypes.c_void_p) -> ctypes.c_ulong | ctypes.c_void_p:
    return ctypes.c_ulong(value) if isinstance(value, int) else value


def _check(result: int, what: str) -> int:
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{what}: {os.strerror(number)}")
    return result
