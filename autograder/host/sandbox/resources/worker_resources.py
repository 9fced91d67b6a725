"""The resources that one worker holds on this machine."""

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from autograder.host.sandbox.resources import folder
from autograder.host.sandbox.resources.cgroup import Group
from autograder.host.sandbox.resources.users import ThrowawayUser


@dataclass
class Resources:
    """What was resources for one worker and is given back when it has ended."""

    user: ThrowawayUser | None = None
    group: Group | None = None
    private: Path | None = None
    give_back: Callable[[], None] = field(default=lambda: None)

    def release(self) -> None:
        """Give all back."""
        if self.group:
            self.group.remove()
        if self.user:
            self.user.release()
        if self.private:
            folder.remove(self.private)
        self.give_back()
