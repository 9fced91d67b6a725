"""Tell whose a file in a learning platform's archive is, by the part of its path that the platform wrote.

Students choose the names of their files and folders, so the platform's part is searched from the outside. It must lie
at the same depth in the whole archive. If the course has a roster, only its students are found, by number, login,
e-mail address or full name.
"""

import re
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import PurePosixPath

from autograder.classroom.nbgrader.quarantine import STUDENT
from autograder.classroom.roster_lookup import Roster, UnmatchedError

NOTEBOOK = ".ipynb"
_FILE = r"(?P<file>[^/.][^/]*)"
_INSIDE = rf"(?:/(?:[^/]+/)*{_FILE})"  # in a folder of the student's own
# Each pattern begins with a part of the path. `account` is the platform's number of the student, `order` grows with
# each time that a student hands in.
FLAT = {  # the file's name says whose it is
    "Canvas, anonymous": rf"(?:LATE_)?(?P<alias>anon_\w+?)_(?P<order>\d+)_{_FILE}",
    "Canvas": rf"(?P<name>[^/]+?)_(?:LATE_)?(?P<account>\d+)_(?P<order>\d+)_{_FILE}",
    "Moodle": rf"(?P<name>[^/]+?)_(?P<account>\d+)_assignsubmission_(?:file|onlinetext)_{_FILE}",
    "Blackboard": rf"(?P<login>[^/]+?)_attempt_(?P<order>\d{{4}}(?:-\d\d){{5}})_{_FILE}",
    "Brightspace": rf"(?P<number>\d+)-\d+ ?-\s+(?P<name>[^/]+?) ?-\s+(?P<order>[^/-]*\d{{4}}[^/-]*?) ?-\s+{_FILE}",
    "Sakai": rf"(?P<name>[^/()]+)\((?P<login>[^/()]+)\)_Submission attachment\(s\)_{_FILE}",
    "Google Classroom": rf"(?P<known>[^/]+?) - {_FILE}",
}
FOLDERS = {  # a folder's name says whose the files in it are
    "Moodle": rf"(?P<name>[^/]+?)_(?P<account>\d+)_assignsubmission_(?:file|onlinetext)_?{_INSIDE}",
    "Brightspace": rf"(?P<number>\d+)-\d+ ?-\s+(?P<name>[^/]+?) ?-\s+(?P<order>[^/-]*\d{{4}}[^/-]*){_INSIDE}",
    "Sakai": rf"(?P<name>[^/()]+,[^/()]*|[^/()]+(?=\([^/()]+\)/Submission att))\((?P<login>[^/()]+)\){_INSIDE}",
    "Teams": rf"(?P<name>[^/]+)/[^/]+/Versi[^/ ]* (?P<order>\d+){_INSIDE}",
    "OpenOlat": rf"(?P<person>[^/]+)/(?P<order>\d+)_(?:submissions|revisions)\d*{_INSIDE}",
    "Gradescope": rf"(?P<submission>submission_\d+){_INSIDE}",
    "folders by student": rf"(?P<known>[^/]+){_INSIDE}",
}
_PATTERNS = [(platform, re.compile(text)) for group in (FOLDERS, FLAT) for platform, text in group.items()]
_GOOGLE = re.compile(FLAT["Google Classroom"])
_NEEDS_A_ROSTER = "; Google Classroom needs the course's roster (autograder roster FILE)"
_PLAIN = re.compile(rf"(?P<name>[^/]+)/{_FILE}")
_AGAIN = re.compile(r"(?P<file>.+)-(?P<again>\d+)")  # Canvas numbers files of the same name
_MONTHS = "jan feb mar apr may jun jul aug sep oct nov dec"
_BLIND = "participant"


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
        return (again,), _time(self.said.get("order", ""))


_TELLS_APART = ("name", "account", "number", "login", "alias", "known", "person", "submission")


@dataclass
class Collected:
    """Whose each file is, and which files have no student."""

    students: dict[str, tuple[str, str]] = field(default_factory=dict)  # by path: the student's id, the file's name
    older: list[str] = field(default_factory=list)  # replaced by what the same student handed in later
    left_out: dict[str, str] = field(default_factory=dict)  # by path: why


def collected(
    paths: Iterable[str], roster: Roster, submitters: Mapping[str, Sequence[Mapping[str, str]]] | None = None
) -> Collected:
    """Return whose each of `paths` is; `submitters` are those of Gradescope's submissions, by folder."""
    ordered = sorted(paths)
    claims = _claims(ordered, roster)
    result = Collected()
    why = "its path names no student" + ("" if claims or roster or not _in_one_folder(ordered) else _NEEDS_A_ROSTER)
    result.left_out |= {path: why for path in ordered if path not in claims}
    shared = _shared_names(claims.values())
    owned: dict[tuple[str, str], list[Claim]] = defaultdict(list)
    without: dict[str, str] = {}  # files of other types, by student
    for claim in claims.values():
        try:
            student = _student(claim, roster, shared, submitters or {})
        except UnmatchedError as error:
            result.left_out[claim.path] = str(error)
            continue
        if claim.file.endswith(NOTEBOOK):
            owned[student, claim.file].append(claim)
        else:
            without[student] = claim.path
    for (student, file), several in owned.items():
        if len({(claim.platform, claim.owner) for claim in several}) > 1:
            others = " and ".join(sorted({repr(claim.path.split("/")[claim.depth])[:80] for claim in several})[:2])
            result.left_out |= {claim.path: f"{student} is claimed by {others}" for claim in several}
            continue
        kept = max(several, key=lambda claim: (claim.turn, -claim.path.count("/")))
        result.students[kept.path] = (student, file)
        for claim in several:
            if claim.turn < kept.turn:
                result.older.append(claim.path)
            elif claim is not kept:
                result.left_out[claim.path] = f"{student} has another file of this name, which was taken"
    result.left_out = {path: why for path, why in result.left_out.items() if path.endswith(NOTEBOOK)}
    missing = without.keys() - {student for student, _ in owned}
    result.left_out |= {without[student]: f"{student} handed in no notebook" for student in sorted(missing)}
    return result


def _claims(paths: Sequence[str], roster: Roster) -> dict[str, Claim]:
    """Return the claims of all paths that make one at the depth where the platform writes."""
    read = [claim for path in paths for claim in _read(path, roster)]
    if not roster and len({path.split("/")[0] for path in paths if "/" in path}) > 1 and not _folders_at_top(read):
        plain = ((path, _PLAIN.fullmatch(path)) for path in paths)  # before names of files, which students choose
        return {path: Claim("STUDENT/FILE", path, 0, said.groupdict()) for path, said in plain if said}
    if not read:
        plain = ((path, _PLAIN.fullmatch(path)) for path in paths if not roster and not _in_one_folder(paths))
        return {path: Claim("STUDENT/FILE", path, 0, said.groupdict()) for path, said in plain if said}
    depth = min(claim.depth for claim in read)
    found: dict[str, Claim] = {}
    for claim in read:
        if claim.depth == depth:
            found.setdefault(claim.path, claim)
    return found


def _in_one_folder(paths: Iterable[str]) -> bool:
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


def _shared_names(claims: Iterable[Claim]) -> set[str]:
    """Return the names that several accounts have, as all have where the platform hides names."""
    owners = {(claim.said["name"], claim.owner) for claim in claims if "name" in claim.said}
    return {name for name, number in Counter(name for name, _ in owners).items() if number > 1}


def _student(
    claim: Claim, roster: Roster, shared: set[str], submitters: Mapping[str, Sequence[Mapping[str, str]]]
) -> str:
    """Return the id of the student that a claim names; raises `UnmatchedError`."""
    said = dict(claim.said)
    if "submission" in said:
        folder = "/".join(claim.path.split("/")[: claim.depth + 1])
        people = submitters.get(folder, ())
        if len(people) != 1:
            why = "a group handed it in" if people else f"submission_metadata.yml does not name {folder}"
            raise UnmatchedError(f"{why}; copy it by hand")
        said |= people[0]
    if number := said.get("account") or said.get("number"):
        name = said["name"]
        if name.casefold() == _BLIND or (name in shared and not roster.has_name(name)):
            said = {"alias": f"{name}_{number}"}  # the number of a hidden name is no account's
    if roster and not ("alias" in said and not roster.knows(said["alias"])):
        return roster.find(said)
    text = said.get("alias") or said.get("name") or said.get("person") or said["login"].split("_")[-1]
    return _folder_name(text)


def _folder_name(text: str) -> str:
    """Return `text` without characters that a student's folder cannot have."""
    name = re.sub(r"\s+", " ", re.sub(r"[^\w.@+ -]", "", text.replace("/", " "))).strip(" ")[:100]
    if not STUDENT.fullmatch(name):
        raise UnmatchedError(f"{text!r:.80} cannot be a student's folder")
    return name


def _time(order: str) -> tuple[int, ...]:
    """Return the numbers of a platform's date or count, a month's name as its number, in an order that grows."""
    said = re.fullmatch(r"([A-Za-z]{3})[a-z]*\.? (\d+), (\d{4}) (\d{1,2})(\d\d) ?([AP])M", order)
    if said:
        month, day, year, hour, minute, half = said.groups()
        return (int(year), _MONTHS.find(month.lower()), int(day), int(hour) % 12 + 12 * (half == "P"), int(minute))
    return tuple(int(number) for number in re.findall(r"\d+", order))
