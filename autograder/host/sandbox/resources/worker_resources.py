"""The resources that one worker holds on this machine, including a user of its own if the host runs as root."""

import os
import stat
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from autograder.host.posix import fcntl
from autograder.host.sandbox.levels import SandboxError
from autograder.host.sandbox.resources import folder
from autograder.host.sandbox.resources.cgroup import Group

# Neither Debian's policy nor systemd's dynamic users use 60706 to 61183 (systemd.io/UIDS-GIDS).
# 60799 is the user that kills workers (`autograder.worker.zygote.keeper`).
FIRST_UID = 60_800
COUNT = 256


LOCKS = Path("/run/autograder")


class ThrowawayUser:
    """A user id that no other worker on this machine has until `release`; no two share limits or files.

    A lock on a file that only root can open marks the id as taken; the kernel removes it when the process ends.
    """

    def __init__(self) -> None:
        _make_private(LOCKS)
        for self.uid in range(FIRST_UID, FIRST_UID + COUNT):
            self._lock = os.open(LOCKS / str(self.uid), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
            try:
                fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                os.close(self._lock)
            else:
                return
        raise SandboxError(f"All {COUNT} user ids for workers are taken; wait for other grading runs to end.")

    def release(self) -> None:
        """Give the user id back."""
        fcntl.flock(self._lock, fcntl.LOCK_UN)  # a process that was forked meanwhile may hold the file open too
        os.close(self._lock)


def _make_private(folder: Path) -> None:
    """Make a folder that only root can enter; raise `SandboxError` if that cannot be had."""
    try:
        folder.mkdir(mode=0o700, exist_ok=True)
        found = folder.lstat()
    except OSError as error:
        raise SandboxError(f"The folder {folder}, which marks user ids as taken, cannot be made ({error}).") from None
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.geteuid() or found.st_mode & 0o077:
        raise SandboxError(f"{folder} must be a folder that only root can enter; remove what is there.")


@dataclass
class Resources:
    """The resources of one worker, to be released when it has ended."""

    user: ThrowawayUser | None = None
    group: Group | None = None
    private: Path | None = None
    give_back: Callable[[], None] = field(default=lambda: None)

    def release(self) -> None:
        """Remove the worker's control group and private folder, free its user id, and call `give_back`."""
        if self.group:
            self.group.remove()
        if self.user:
            self.user.release()
        if self.private:
            folder.remove(self.private)
        self.give_back()
