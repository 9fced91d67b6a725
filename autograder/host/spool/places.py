"""Where the folders of trials are in the exchange, and whether anybody else could put others in their place.

    EXCHANGE/COURSE/trials/     only the server writes
        inbound/                everybody may put a request here, nobody but the server may list it
        replies/                only the server writes; nobody else may list it
        taken/                  requests that are worked off; closed to all others
        serving                 the server changes its time every few seconds
        board.html              if the instructor wants a board

The inbound folder is sticky: only a request's owner and the server can rename or remove it.
"""

import os
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

FOLDER_MODES = {"": 0o755, "inbound": 0o1733, "replies": 0o711, "taken": 0o700}
"""Each folder in the folder of trials, and who may do what in it."""


@dataclass(frozen=True)
class Places:
    """The folders of one course's trials in nbgrader's exchange."""

    exchange: Path
    course: str

    @property
    def trials(self) -> Path:
        """Return the folder of trials."""
        return self.exchange / self.course / "trials"

    @property
    def inbound(self) -> Path:
        """Return where requests are put."""
        return self.trials / "inbound"

    @property
    def replies(self) -> Path:
        """Return where replies are."""
        return self.trials / "replies"

    @property
    def taken(self) -> Path:
        """Return where the requests are that a server works off."""
        return self.trials / "taken"

    @property
    def serving(self) -> Path:
        """Return the file whose time says that a server runs."""
        return self.trials / "serving"

    @property
    def board(self) -> Path:
        """Return the page with the ratios of the class."""
        return self.trials / "board.html"


def doubts(places: Places) -> Iterator[str]:
    """Yield why somebody else might own these folders or put others in their place; nothing if nobody can.

    Raises `FileNotFoundError` if one of them is missing.
    """
    root = places.exchange.stat()
    if root.st_mode & stat.S_IWOTH and not root.st_mode & stat.S_ISVTX:
        yield f"everybody can replace folders in {places.exchange}, which is not sticky"
    course = os.lstat(places.exchange / places.course)
    if not stat.S_ISDIR(course.st_mode) or course.st_mode & stat.S_IWOTH:
        yield f"everybody can replace folders in {places.exchange / places.course}"
    for name, mode in FOLDER_MODES.items():
        found = os.lstat(places.trials / name)
        if not stat.S_ISDIR(found.st_mode) or stat.S_IMODE(found.st_mode) & 0o1777 != mode:
            yield f"{places.trials / name} is not a folder of mode {mode:o}"
        elif found.st_uid not in (course.st_uid, 0):
            yield f"{places.trials / name} does not belong to the owner of the course's folder"
