"""The requests for trials that wait in the exchange, and whose turn it is.

Everybody can write into the folder of requests, so nothing in it is believed. A request belongs to the owner of its
file; times come from this process's own clock; what cannot be a request is removed without being opened. Whoever sends
much waits for oneself only: the next turn is that of the user whose last one is longest ago. A folder with something
in it cannot be removed here. Where these are too many for a look, the folder of requests is put aside, and another one
takes its place.
"""

import contextlib
import os
import pwd
import stat
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from autograder.host.spool import LETTER_NAME, MAX_REQUEST_BYTES, opened_folder
from autograder.host.spool.places import FOLDER_MODES

MOST_WAITING = 4  # requests of one user; older ones are removed
EXPIRES_S = 600.0  # the notebook has stopped waiting by then
SCAN_S = 5.0  # for one look into the folder; the next look goes on, since what is too much was removed
OTHERS_KEPT_S = 600.0  # what is not a request may be one that is being written
OTHERS_KEPT = 1_000


@dataclass(frozen=True)
class Waiting:
    """A request that waits: the name of its file, the user who owns it, and since when, by this process's clock."""

    name: str
    owner: int
    since_s: float


@dataclass
class Inbox:
    """The requests in an open folder, which lies at `place`; a user gets a turn at most every `every_s` seconds."""

    folder: int
    place: Path
    every_s: float
    clock: Callable[[], float] = time.monotonic
    say: Callable[[str], None] = print
    _waiting: dict[tuple[int, str], Waiting] = field(default_factory=dict)
    _ended_s: dict[int, float] = field(default_factory=dict)

    def look(self) -> None:
        """Read the folder anew, and remove what is no request or too much."""
        self._follow()
        found: dict[int, list[tuple[int, str]]] = {}
        owners: Counter[int] = Counter()
        until, folders, others, complete = time.monotonic() + SCAN_S, 0, 0, True
        with os.scandir(self.folder) as entries:
            for entry in entries:
                if entry.is_dir(follow_symlinks=False):  # known without asking for each
                    folders += 1
                    if folders <= OTHERS_KEPT:
                        self._remove_folder(entry, owners)
                elif LETTER_NAME.fullmatch(entry.name):
                    self._sort(entry, found)
                else:
                    others += 1
                    self._tidy(entry, others)
                if time.monotonic() > until:
                    complete = False
                    break
        now = self.clock()
        keys = {(owner, name) for owner, mine in found.items() for _, name in mine}
        before = {key: one for key, one in self._waiting.items() if key in keys or not complete}
        self._waiting = {(owner, name): Waiting(name, owner, now) for owner, name in keys} | before
        for one in [one for one in self._waiting.values() if now - one.since_s > EXPIRES_S]:
            self.forget(one)
            self._remove(one.name)
        if not complete and folders > OTHERS_KEPT:
            self._begin_again(folders, owners)

    def next(self) -> Waiting | None:
        """Return the newest request of the user whose turn it is, or None if nobody's."""
        now = self.clock()
        ended_s = {one.owner: self._ended_s.get(one.owner, float("-inf")) for one in self._waiting.values()}
        ready = [one for one in self._waiting.values() if now - ended_s[one.owner] >= self.every_s]
        if not ready:
            return None
        owner = min(ready, key=lambda one: (ended_s[one.owner], one.since_s)).owner
        return max((one for one in ready if one.owner == owner), key=lambda one: one.since_s)

    def forget(self, one: Waiting) -> None:
        """Leave a request out, because it was taken or is gone."""
        self._waiting.pop((one.owner, one.name), None)

    def ended(self, owner: int) -> None:
        """Count the time to a user's next turn from now."""
        self._ended_s[owner] = self.clock()

    def _sort(self, entry: "os.DirEntry[str]", found: dict[int, list[tuple[int, str]]]) -> None:
        try:
            status = entry.stat(follow_symlinks=False)
        except OSError:  # withdrawn meanwhile
            return
        plain = stat.S_ISREG(status.st_mode) and status.st_nlink == 1 and status.st_size <= MAX_REQUEST_BYTES
        if not plain or account(status.st_uid) is None:
            self._remove(entry.name)
            return
        mine = found.setdefault(status.st_uid, [])
        mine.append((status.st_ctime_ns, entry.name))  # nobody can set this time
        if len(mine) > MOST_WAITING:
            mine.remove(oldest := min(mine))
            self._remove(oldest[1])

    def _tidy(self, entry: "os.DirEntry[str]", others: int) -> None:
        with contextlib.suppress(OSError):
            age_s = time.time() - entry.stat(follow_symlinks=False).st_ctime
            if others > OTHERS_KEPT or age_s > OTHERS_KEPT_S:
                self._remove(entry.name)

    def _remove(self, name: str) -> None:
        """Remove an entry of the folder itself, never what it leads to."""
        with contextlib.suppress(OSError):
            os.unlink(name, dir_fd=self.folder)

    def _remove_folder(self, entry: "os.DirEntry[str]", owners: Counter[int]) -> None:
        """Remove an empty folder; of many only some are tried, since each try takes time."""
        try:
            os.rmdir(entry.name, dir_fd=self.folder)
        except OSError:
            with contextlib.suppress(OSError):
                owners[entry.stat(follow_symlinks=False).st_uid] += 1

    def _begin_again(self, folders: int, owners: Counter[int]) -> None:
        """Put the folder aside, closed, and an empty one in its place, with the requests that were found."""
        aside, fresh = self.place.with_name(f"aside-{time.time_ns()}"), self.place.with_name("fresh")
        fresh.mkdir(mode=0o700, exist_ok=True)
        fresh.chmod(FOLDER_MODES["inbound"])
        self.place.rename(aside)
        fresh.rename(self.place)
        aside.chmod(0o700)
        old = os.dup(self.folder)
        try:
            self._follow()
            for one in self._waiting.values():
                with contextlib.suppress(OSError):  # withdrawn meanwhile
                    os.rename(one.name, one.name, src_dir_fd=old, dst_dir_fd=self.folder)
        finally:
            os.close(old)
        whose = ", ".join(f"{account(uid) or uid} ({count:,})" for uid, count in owners.most_common(3))
        self.say(
            f"{folders:,} folders that only their owners can remove kept trials from being found; of the first "
            f"{owners.total():,} by owner: {whose}. They are in {aside} now; requests that lay "
            "behind them get no reply, and have to be sent again."
        )

    def _follow(self) -> None:
        """Open the folder that is in its place now, if this or another server has begun again."""
        now, mine = self.place.stat(follow_symlinks=False), os.fstat(self.folder)
        if (now.st_dev, now.st_ino) != (mine.st_dev, mine.st_ino):
            opened = opened_folder(self.place, listed=True)
            os.dup2(opened, self.folder, inheritable=False)
            os.close(opened)


def account(uid: int) -> str | None:
    """Return the name of a user's account, or None: users without one, as a container may make many, get no turn."""
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return None
