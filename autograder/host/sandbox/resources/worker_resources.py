"""The resources that one worker holds on this machine, including a user of its own if the host runs as root."""

import errno
import socket
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from autograder.host.sandbox.levels import SandboxError
from autograder.host.sandbox.resources import folder
from autograder.host.sandbox.resources.cgroup import Group

# Neither Debian's policy nor systemd's dynamic users use 60706 to 61183 (systemd.io/UIDS-GIDS).
# 60799 is the user that kills workers (`autograder.worker.zygote.keeper`).
FIRST_UID = 60_800
COUNT = 256


class ThrowawayUser:
    """A user id that no other worker on this machine has until `release`; no two share limits or files."""

    def __init__(self) -> None:
        # An abstract socket serves as a lock: it leaves no file and ends with its process.
        self._lock = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.uid = self._first_free()

    def _first_free(self) -> int:
        for uid in range(FIRST_UID, FIRST_UID + COUNT):
            try:
                self._lock.bind(f"\0autograder-sandbox-uid-{uid}")
            except OSError as error:
                if error.errno != errno.EADDRINUSE:
                    raise
            else:
                return uid
        self._lock.close()
        raise SandboxError(f"All {COUNT} user ids for workers are taken; wait for other grading runs to end.")

    def release(self) -> None:
        """Give the user id back."""
        self._lock.close()


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
