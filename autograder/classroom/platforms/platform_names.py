"""Find the part of a path that a learning platform wrote, and what it says about the student.

Students choose the names of their files and folders, so the platform's part is searched from the outside. It must lie
at the same depth in the whole archive.
"""

import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC
from pathlib import PurePosixPath

from autograder.classroom.platforms.platform_times import read_time
from autograder.classroom.platforms.roster_lookup import Roster

NOTEBOOK = ".ipynb"
NOT_HANDED_IN = "not handed in"
_FILE = r"(?P<file>[^/.][^/]*)"
_INSIDE = rf"(?:/(?:[^/]+/)*{_FILE})"  # in a folder of the student's own
# Each pattern begins with a part of the path. `account` and `number` are the platform's number of the student,
# `participant` is a number that Moodle gives for one assignment only. `order` grows with each time that a student hands
# in, and is a time on Blackboard and Brightspace.
FLAT = {  # the file's name says whose it is
    "Canvas, anonymous": rf"(?P<late>LATE_)?(?P<alias>anon_\w+?)_(?P<order>\d+)_{_FILE}",
    "Canvas": rf"(?P<name>[^/]+?)_(?P<late>LATE_)?(?P<account>\d+)_(?P<order>\d+)_{_FILE}",
    "Moodle": rf"(?P<name>[^/]+?)_(?P<participant>\d+)_assignsubmission_(?:file|onlinetext)_{_FILE}",
    "Blackboard": rf"(?P<login>[^/]+?)_attempt_(?P<order>\d{{4}}(?:-\d\d){{5}})_{_FILE}",
    "Brightspace": rf"(?P<number>\d+)-\d+ ?-\s+(?P<name>[^/]+?) ?-\s+(?P<order>[^/-]*\d{{4}}[^/-]*?) ?-\s+{_FILE}",
    "Sakai": rf"(?P<name>[^/()]+)\((?P<login>[^/()]+)\)_Submission attachment\(s\)_{_FILE}",
    "Google Classroom": rf"(?P<known>[^/]+?) - {_FILE}",
}
FOLDERS = {  # a folder's name says whose the files in it are
    "Moodle": rf"(?P<name>[^/]+?)_(?P<participant>\d+)_assignsubmission_(?:file|onlinetext)_?{_INSIDE}",
    "Brightspace": rf"(?P<number>\d+)-\d+ ?-\s+(?P<name>[^/]+?) ?-\s+(?P<order>[^/-]*\d{{4}}[^/-]*){_INSIDE}",
    "Sakai": rf"(?P<name>[^/()]+,[^/()]*|[^/()]+(?=\([^/()]+\)/Submission att))\((?P<login>[^/()]+)\){_INSIDE}",
    "Teams": rf"(?P<name>[^/]+)/[^/]+/Versi[^/ ]* (?P<order>\d+){_INSIDE}",
    "OpenOlat": rf"(?P<person>[^/]+)/(?P<order>\d+)_(?:submissions|revisions(?:_\d+)?){_INSIDE}",
    "Gradescope": rf"(?P<submission>submission_\d+){_INSIDE}",
    "folders by student": rf"(?P<known>[^/]+){_INSIDE}",
    NOT_HANDED_IN: rf"(?P<person>[^/]+)/\d+_(?:task|assessment|corrections(?:_\d+)?){_INSIDE}",
}
_PATTERNS = [(platform, re.compile(text)) for group in (FOLDERS, FLAT) for platform, text in group.items()]
_GOOGLE = re.compile(FLAT["Google Classroom"])
_PLAIN = re.compile(rf"(?P<name>[^/]+)/{_FILE}")
_AGAIN = re.compile(r"(?P<file>.+)-(?P<again>\d+)")  # Canvas numbers files of the same name
_TELLS_APART = ("name", "account", "number", "participant", "login", "alias", "known", "person", "submission")


@dataclass(frozen=True)
class Claim:
    """What a file's path says about its student."""

    platform: str
    path: str
    depth: int  # the place in the path of the part that the platform wrote
    said: Mapping[str, str] = field(compare=False)  # by the pattern's groups

    @property
    def owner(self) -> tuple[str, ...]:
        """Return what tells two students apart."""
        return tuple(self.said.get(key, "") for key in _TELLS_APART)

    @property
    def file(self) -> str:
        """Return the name that the student gave to the file."""
        name = PurePosixPath(self.said["file"])
        numbered = _AGAIN.fullmatch(name.stem) if self.platform.startswith("Canvas") else None
        return f"{numbered['file']}{name.suffix}" if numbered else name.name

    @property
    def turn(self) -> tuple[tuple[int, ...], ...]:
        """Return a key that is greater for what was handed in later."""
        numbered = _AGAIN.fullmatch(PurePosixPath(self.said["file"]).stem)
        again = int(numbered["again"]) if numbered and self.platform.startswith("Canvas") else 0
        order = self.said.get("order", "")
        when = read_time(order, UTC)
        return (again,), (int(when.timestamp()),) if when else tuple(map(int, re.findall(r"\d+", order)))

    @property
    def above(self) -> str:
        """Return the path of the folder that the platform's part lies in."""
        return "/".join(self.path.split("/")[: self.depth])

    @property
    def folder(self) -> str:
        """Return the path up to the part that the platform wrote, with it."""
        return "/".join(self.path.split("/")[: self.depth + 1])


def claims_of(paths: Sequence[str], roster: Roster) -> dict[str, Claim]:
    """Return the claims of all paths that make one at the depth where the platform writes."""
    read = [claim for path in paths for claim in _read(path, roster)]
    if not roster and len({path.split("/")[0] for path in paths if "/" in path}) > 1 and not _folders_at_top(read):
        plain = ((path, _PLAIN.fullmatch(path)) for path in paths)  # before names of files, which students choose
        return {path: Claim("STUDENT/FILE", path, 0, said.groupdict()) for path, said in plain if said}
    if not read:
        plain = ((path, _PLAIN.fullmatch(path)) for path in paths if not roster and not in_one_folder(paths))
        return {path: Claim("STUDENT/FILE", path, 0, said.groupdict()) for path, said in plain if said}
    depth = min(claim.depth for claim in read)
    found: dict[str, Claim] = {}
    for claim in _of_the_platform([claim for claim in read if claim.depth == depth]):
        found.setdefault(claim.path, claim)
    return found


def _of_the_platform(claims: Sequence[Claim]) -> Iterator[Claim]:
    """Yield the claims, with `NOT_HANDED_IN` for those that mean something else on the platform of the archive.

    Teams keeps what is not handed in under the students' names too, next to the folder with what is. Only OpenOlat has
    folders from the teacher.
    """
    openolat = any(claim.platform == "OpenOlat" for claim in claims)
    teams = {claim.above for claim in claims if claim.platform == "Teams"}
    for claim in claims:
        if claim.platform == "folders by student" and teams and claim.above not in teams:
            yield replace(claim, platform=NOT_HANDED_IN)
        elif openolat or claim.platform != NOT_HANDED_IN:
            yield claim


def in_one_folder(paths: Iterable[str]) -> bool:
    """Return whether all notebooks lie in one folder and have names as Google Classroom gives them.

    Such a name, "Ana Ruiz - 00_start_here", is chosen by the student, so only a roster tells whose the file is.
    """
    notebooks = [PurePosixPath(path) for path in paths if path.endswith(NOTEBOOK)]
    return len({path.parent for path in notebooks}) == 1 and all(_GOOGLE.fullmatch(path.name) for path in notebooks)


def _folders_at_top(claims: Iterable[Claim]) -> bool:
    return any(claim.depth == 0 and "/" in claim.path for claim in claims)


def _read(path: str, roster: Roster) -> list[Claim]:
    """Return what `path` says at the outermost part that says anything."""
    parts = path.split("/")
    for depth in range(len(parts)):
        rest = "/".join(parts[depth:])
        found = []
        for platform, pattern in _PATTERNS:
            said = pattern.fullmatch(rest)
            if said and ("known" not in said.groupdict() or roster.knows(said["known"])):
                groups = {key: unicodedata.normalize("NFC", text) for key, text in said.groupdict().items() if text}
                found.append(Claim(platform, path, depth, groups))  # macOS decomposes letters with accents
        if found:
            return found
    return []
