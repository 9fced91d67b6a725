"""The resources that one worker holds on this machine."""

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from autograder.host.sandbox.resources import folder
from autograder.host.sandbox.resources.cgroup import Group
from autograder.host.sandbox.resources.users import ThrowawayUser


@dataclass
class Resources:
    """The resources of one worker, to be released when it has ended."""

    user: ThrowawayUser | None = None
    group: Group | None = None
    private: Path | None = None
    give_back: Callable[[], None] = field(default=lambda: None)

    def release(self) -> None:
        """Release all of them."""
        if self.group:
            self.group.remove()
        if self.user:
            self.user.release()
        if self.private:
            folder.remove(self.private)
        self.give_back()
