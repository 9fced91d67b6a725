"""Decide whose each file of a learning platform's archive is, and when it was handed in.

If the course has a roster, only its students are found, by what the platform guarantees: its own number of a user, an
account, an e-mail address, or a full name that one student has. Whatever is not certain is left out, with the reason.
"""

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, tzinfo

from autograder.classroom.nbgrader.quarantine import STUDENT
from autograder.classroom.platforms.moodle_worksheet import Participant
from autograder.classroom.platforms.platform_names import NOT_HANDED_IN, NOTEBOOK, Claim, claims_of, in_one_folder
from autograder.classroom.platforms.platform_times import has_zone, read_time
from autograder.classroom.platforms.roster_lookup import Roster, UnmatchedError, words

_NEEDS_A_ROSTER = "; Google Classroom needs the course's roster (autograder roster FILE)"
_BLIND = "participant"
_WITH_TIMES = ("Blackboard", "Brightspace")  # in the names of files and folders


@dataclass(frozen=True)
class Enclosed:
    """What an archive, and the files next to it, say apart from the names of files."""

    submitters: Mapping[str, Sequence[Mapping[str, str]]] = field(default_factory=dict)  # Gradescope's, by folder
    created: Mapping[str, str] = field(default_factory=dict)  # times in Gradescope's list, by folder
    stamps: Mapping[str, str] = field(default_factory=dict)  # what files called timestamp.txt hold, by folder
    participants: Mapping[str, Participant] = field(default_factory=dict)  # of Moodle's worksheet, by number
    zone: tzinfo | None = None  # of times that have none; by default this machine's


@dataclass
class Collected:
    """Whose each file is, and which files have no student."""

    students: dict[str, tuple[str, str]] = field(default_factory=dict)  # by path: the student's id, the file's name
    times: dict[str, datetime] = field(default_factory=dict)  # by path, in UTC, if the platform says the time
    zoneless: bool = False  # whether a time was read in the time zone that is set here
    late: list[str] = field(default_factory=list)  # paths that the platform calls late
    unread: list[str] = field(default_factory=list)  # times that are neither in English nor in numbers
    older: list[str] = field(default_factory=list)  # replaced by what the same student handed in later
    left_out: dict[str, str] = field(default_factory=dict)  # by path: why


def collected(paths: Iterable[str], roster: Roster, enclosed: Enclosed | None = None) -> Collected:
    """Return whose each of `paths` is."""
    ordered = sorted(paths)
    claims = claims_of(ordered, roster)
    result = Collected()
    why = "its path names no student" + ("" if claims or roster or not in_one_folder(ordered) else _NEEDS_A_ROSTER)
    result.left_out |= {path: why for path in ordered if path not in claims}
    owned: dict[tuple[str, str], list[Claim]] = defaultdict(list)
    without: dict[str, str] = {}  # files of other types, by student
    unmatched: dict[tuple[str, ...], dict[str, str]] = defaultdict(dict)
    for claim in (claim for claim in claims.values() if claim.platform != NOT_HANDED_IN):
        try:
            student = _student(claim, roster, enclosed or Enclosed())
        except UnmatchedError as error:
            unmatched[claim.owner][claim.path] = str(error)
            continue
        if claim.file.endswith(NOTEBOOK):
            owned[student, claim.file].append(claim)
        else:
            without[student] = claim.path
    for (student, file), several in owned.items():
        if kept := _newest(student, several, result):
            result.students[kept.path] = (student, file)
            _note_time(kept, enclosed or Enclosed(), result)
    result.left_out = {path: why for path, why in result.left_out.items() if path.endswith(NOTEBOOK)}
    missing = without.keys() - {student for student, _ in owned}
    result.left_out |= {without[student]: f"{student} handed in no notebook" for student in sorted(missing)}
    for files in unmatched.values():
        notebooks = {path: why for path, why in files.items() if path.endswith(NOTEBOOK)}
        result.left_out |= notebooks or dict(list(files.items())[:1])
    return result


def _newest(student: str, several: Sequence[Claim], result: Collected) -> Claim | None:
    """Return the claim that counts, and note the others; None if two people make claims to one student."""
    if len({(claim.platform, claim.owner) for claim in several}) > 1:
        others = " and ".join(sorted({repr(claim.path.split("/")[claim.depth])[:80] for claim in several})[:2])
        result.left_out |= {claim.path: f"{student} is claimed by {others}" for claim in several}
        return None
    kept = max(several, key=lambda claim: (claim.turn, -claim.path.count("/")))
    for claim in several:
        if claim.turn < kept.turn:
            result.older.append(claim.path)
        elif claim is not kept:
            result.left_out[claim.path] = f"{student} has another file of this name, which was taken"
    return kept


def _note_time(claim: Claim, enclosed: Enclosed, result: Collected) -> None:
    text = _time_text(claim, enclosed)
    if when := read_time(text, enclosed.zone):
        result.times[claim.path] = when
        result.zoneless |= not has_zone(text)
    elif text not in ("", "-"):
        result.unread.append(text)
    if "late" in claim.said:
        result.late.append(claim.path)


def _time_text(claim: Claim, enclosed: Enclosed) -> str:
    """Return the time in the platform's own words; a student may hand in any file, also one called timestamp.txt."""
    if claim.platform == "Moodle" and claim.said["participant"] in enclosed.participants:
        return enclosed.participants[claim.said["participant"]].submitted
    if claim.platform == "Gradescope":
        return enclosed.created.get(claim.folder, "")
    if claim.platform == "Sakai":
        return enclosed.stamps.get(claim.folder, "")
    return claim.said["order"] if claim.platform in _WITH_TIMES else ""


def _student(claim: Claim, roster: Roster, enclosed: Enclosed) -> str:
    """Return the id of the student that a claim names; raises `UnmatchedError`."""
    said = dict(claim.said)
    if "participant" in said:
        return _participant(said["name"], said["participant"], roster, enclosed)
    if "submission" in said:
        people = enclosed.submitters.get(claim.folder, ())
        if len(people) != 1:
            why = "a group handed it in" if people else f"submission_metadata.yml does not name {claim.folder}"
            raise UnmatchedError(f"{why}; copy it by hand")
        said |= people[0]
    if roster and not ("alias" in said and not roster.knows(said["alias"])):
        return roster.find(said)
    return folder_name(said.get("alias") or said.get("name") or said.get("person") or said["login"].split("_")[-1])


def _participant(name: str, number: str, roster: Roster, enclosed: Enclosed) -> str:
    """Return whose a number of one assignment in Moodle is; raises `UnmatchedError`."""
    hidden = name.casefold() == _BLIND
    if not enclosed.participants:
        if hidden:
            return student_of(Participant(number), roster)
        try:
            return student_of(Participant(number, name), roster)
        except UnmatchedError as error:
            raise UnmatchedError(f"{error}; put the assignment's grading worksheet next to the archive") from None
    person = enclosed.participants.get(number)
    if person is None:
        raise UnmatchedError(f"the worksheet has no participant {number}; is it of another assignment?")
    if not hidden and "".join(words(person.name)) not in "".join(words(name)):  # Moodle puts a group before the name
        raise UnmatchedError(f"the worksheet calls participant {number} {person.name!r:.80}")
    return student_of(person, roster)


def student_of(person: Participant, roster: Roster) -> str:
    """Return the id of the student who has a line in Moodle's worksheet; raises `UnmatchedError`.

    With blind marking it is the participant's number, which belongs to one assignment only.
    """
    if person.is_blind:
        return f"Participant_{person.number}"
    return roster.person(person.name, person.email) if roster else folder_name(person.name)


def folder_name(text: str) -> str:
    """Return `text` without characters that a student's folder cannot have; raises `UnmatchedError`."""
    name = re.sub(r"\s+", " ", re.sub(r"[^\w.@+ -]", "", text.replace("/", " "))).strip(" ")[:100]
    if not STUDENT.fullmatch(name):
        raise UnmatchedError(f"{text!r:.80} cannot be a student's folder")
    return name
