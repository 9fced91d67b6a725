"""A filter that lets a process signal only itself and its own group, for kernels where Landlock cannot.

It is written instruction by instruction: the process id is known only here, and there is no compiler here.
"""

import errno
import struct
from collections.abc import Mapping

# linux/bpf_common.h and linux/seccomp.h; struct seccomp_data has the call's number at 0 and its arguments from 16 on.
LOAD, EQUAL, RETURN = 0x20, 0x15, 0x06
ALLOW, REFUSE = 0x7FFF0000, 0x00050000 | errno.EPERM
NUMBER_AT, FIRST_AT, FIRST_HIGH_AT = 0, 16, 20

BY_NUMBER = ("kill", "tgkill", "tkill", "rt_sigqueueinfo", "rt_tgsigqueueinfo")
OWN_GROUP = 0


def program(pid: int, calls: Mapping[str, int]) -> bytes:
    """Return BPF that refuses each of `calls` unless it names `pid`, or for `kill` this process's own group.

    A call that takes a descriptor instead of a process id is always refused.
    """
    code = b""
    for name, number in calls.items():
        if name in BY_NUMBER:
            targets = [pid, OWN_GROUP] if name == "kill" else [pid]
            body = _unless(targets)
        else:
            body = _instruction(RETURN, REFUSE)
        code += _instruction(LOAD, NUMBER_AT)
        code += _instruction(EQUAL, number, otherwise=len(body) // 8) + body
    return code + _instruction(RETURN, ALLOW)


def _unless(targets: list[int]) -> bytes:
    """Refuse unless the first argument is one of `targets`; the kernel uses its lower half."""
    refuse, allow = _instruction(RETURN, REFUSE), _instruction(RETURN, ALLOW)
    compared = b"".join(_instruction(EQUAL, target, then=len(targets) - place) for place, target in enumerate(targets))
    return _instruction(LOAD, FIRST_AT) + compared + refuse + allow


def _instruction(code: int, value: int, *, then: int = 0, otherwise: int = 0) -> bytes:
    return struct.pack("=HBBI", code, then, otherwise, value)
