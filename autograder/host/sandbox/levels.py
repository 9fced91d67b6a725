"""The levels of isolation, from the strongest to none, and what each keeps out."""

from dataclasses import dataclass
from enum import IntEnum


class SandboxError(Exception):
    """The sandbox cannot be opened; the message is one sentence for the user, and the cause is never the student."""

    exit_code = 4  # exit code of a command that fails with this error


class Level(IntEnum):
    """A level of isolation of student code; 1 is the strongest."""

    ISOLATED_AND_LIMITED = 1
    ISOLATED = 2
    CONFINED = 3
    CONFINED_SAME_USER = 4
    NONE = 5


@dataclass(frozen=True)
class Promise:
    """The requirements of a level and what it keeps out, as printed by `autograder sandbox`."""

    title: str
    needs: str
    keeps_out: str


PROMISES = {
    Level.ISOLATED_AND_LIMITED: Promise(
        "isolated and limited",
        "bubblewrap and a control group: root, or a delegated cgroup and user namespaces",
        "files, processes, network and environment of the host; memory and process totals are limited by the kernel",
    ),
    Level.ISOLATED: Promise(
        "isolated",
        "bubblewrap with user namespaces, or root",
        "the same, but the total of memory is only watched, so it may be exceeded for some milliseconds",
    ),
    Level.CONFINED: Promise(
        "confined",
        "root and Landlock, as in a default container",
        "files and network by Landlock and seccomp, other users' processes by a throw-away user; memory and disk are"
        " only watched, and whether a file exists can be asked",
    ),
    Level.CONFINED_SAME_USER: Promise(
        "confined, same user",
        "an ordinary user and Landlock, as in a default container or where namespaces are switched off",
        "as level 3, and this user's own files and processes; before Linux 6.12 signals are held back by a filter only",
    ),
    Level.NONE: Promise(
        "none",
        "nothing",
        "nothing: student code runs with your rights; only time, output and the size of a process are limited",
    ),
}

NOT_ENFORCED = "modules of PyTorch that do an exercise's task were there: that answers do without was not enforced"
"""A note of the levels that mount nothing, since only a mount leaves a single file of a package empty."""
