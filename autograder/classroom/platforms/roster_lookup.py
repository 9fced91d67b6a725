"""Find a student of the roster by what a learning platform's archive says: account, e-mail address or name.

Each kind of number is looked up among numbers of its kind only: a platform's number of a user is the roster's
`lms_user_id`, never an `id` that has the same digits.
"""

import re
import unicodedata
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any


class UnmatchedError(ValueError):
    """The archive names no student, or more than one; the message says why."""


@dataclass(frozen=True)
class Listed:
    """A student as the roster lists one."""

    id: str
    first_name: str = ""
    last_name: str = ""
    email: str = ""
    lms_user_id: str = ""


class Roster:
    """The students of a course; empty if the course has no roster."""

    def __init__(self, students: Iterable[Listed] = ()) -> None:
        self.students = {student.id: student for student in students}
        self._ids: dict[str, set[str]] = defaultdict(set)
        self._emails: dict[str, set[str]] = defaultdict(set)
        self._numbers: dict[str, set[str]] = defaultdict(set)
        self._names: dict[tuple[str, ...], set[str]] = defaultdict(set)
        for student in self.students.values():
            self._ids[_folded(student.id)].add(student.id)
            self._emails[_folded(student.email)].add(student.id)
            self._numbers[_folded(student.lms_user_id)].add(student.id)
            first, last = words(student.first_name), words(student.last_name)
            last = last if first + last else words(student.id)  # without a roster the id is the name
            for name in (first + last, ("".join(last + first),), ("".join(first + last),)):
                self._names[tuple(sorted(name))].add(student.id)
        for table in (self._ids, self._emails, self._numbers):
            table.pop("", None)

    def __bool__(self) -> bool:
        return bool(self.students)

    def knows(self, text: str) -> bool:
        """Return whether `text` is the account or the name of one student."""
        return len(self._account(text) or self.named(text)) == 1

    def has_number(self, number: str) -> bool:
        """Return whether a student has this number on the platform."""
        return _folded(number) in self._numbers

    def named(self, text: str) -> set[str]:
        """Return the ids of the students of this name."""
        return self._names.get(tuple(sorted(words(text))), set())

    def account(self, email: str, number: str) -> str:
        """Return the id of the only student with this address, or with this number on the platform; else empty."""
        found = self._emails.get(_folded(email)) or self._numbers.get(_folded(number)) or set()
        return next(iter(found)) if len(found) == 1 else ""

    def person(self, name: str, email: str = "") -> str:
        """Return the id of the only student with this address, else of this name; raises `UnmatchedError`.

        A student of the name who has another address in the roster is another person.
        """
        if found := self._emails.get(_folded(email)) or self._ids.get(_folded(email)):
            return _only(found, email)
        found = {one for one in self.named(name) if not (email and self.students[one].email)}
        if not found:
            raise UnmatchedError(f"{name!r:.80}{f' <{email:.80}>' if email else ''} is not in the roster")
        return _only(found, name)

    def find(self, said: Mapping[str, str]) -> str:
        """Return the id of the only student whom `said` means; raises `UnmatchedError`.

        >>> Roster([Listed("ana", "Ana", "Ruiz", lms_user_id="1001")]).find({"name": "Ruiz, Ana", "account": "1001"})
        'ana'
        """
        for found, text in self._accounts(said):
            if found:
                return _only(found, text)
        for text in (said[key] for key in ("name", "known", "person") if key in said):
            # a number that the roster does not have is of another person of this name
            of_name = {one for one in self.named(text) if not ("account" in said and self.students[one].lms_user_id)}
            if of_name:
                return _only(of_name, text)
        shown = next(said[key] for key in ("name", "alias", "known", "person", "login", "account") if key in said)
        number = f" ({said['account']})" if "account" in said else ""
        raise UnmatchedError(f"{shown!r:.80}{number} is not in the roster")

    def _accounts(self, said: Mapping[str, str]) -> Iterable[tuple[set[str], str]]:
        """Yield the students whom each account in `said` means, with its text, the surest first."""
        for key in ("account", "number"):  # of a user of the platform
            if key in said:
                yield self._numbers.get(_folded(said[key]), set()), said[key]
        for key in ("alias", "sid", "email", "known"):
            if said.get(key):
                yield self._account(said[key]), said[key]
        for key in ("login", "person"):  # behind the assignment's title or the person's name, with any number of "_"
            pieces = said[key].split("_") if key in said else []
            for start in range(len(pieces)):
                text = "_".join(pieces[start:])
                yield self._account(text), text
        if not said.keys() - {"name", "file", "order"}:
            yield self._ids.get(_folded(said["name"]), set()), said["name"]

    def _account(self, text: str) -> set[str]:
        key = _folded(text)
        return {one for table in (self._ids, self._emails, self._numbers) for one in table.get(key, ())}


def roster_of(students: Iterable[Any]) -> Roster:
    """Return the roster of a gradebook's students."""
    return Roster(
        Listed(s.id, s.first_name or "", s.last_name or "", s.email or "", s.lms_user_id or "") for s in students
    )


def words(text: str) -> tuple[str, ...]:
    """Return the words of a name without the marks within a word, as O'Neil has one."""
    return tuple(re.findall(r"[^\W_]+", re.sub(r"['’`´-]", "", _folded(text))))


def _only(found: set[str], text: str) -> str:
    if len(found) > 1:
        several = " or ".join(sorted(found)[:3])
        raise UnmatchedError(f"{text!r:.80} may be {several}; give each an email and an lms_user_id in the roster")
    return next(iter(found))


def _folded(text: str) -> str:
    return unicodedata.normalize("NFKC", text).casefold().strip()
