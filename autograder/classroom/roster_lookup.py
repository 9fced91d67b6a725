"""Find a student of the roster by what a learning platform's archive says: number, login, e-mail address or name."""

import re
import unicodedata
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass


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
        self.students = tuple(students)
        self._accounts: dict[str, set[str]] = defaultdict(set)
        self._names: dict[tuple[str, ...], set[str]] = defaultdict(set)
        self._numbers: dict[str, str] = {}
        for student in self.students:
            for account in {student.id, student.email, student.lms_user_id} - {""}:
                self._accounts[_folded(account)].add(student.id)
            first, last = _words(student.first_name), _words(student.last_name)
            for words in (first + last, ("".join(last + first),), ("".join(first + last),)):
                self._names[tuple(sorted(words))].add(student.id)
            self._numbers[student.id] = student.lms_user_id

    def __bool__(self) -> bool:
        return bool(self._numbers)

    def knows(self, text: str) -> bool:
        """Return whether `text` is the account or the name of one student."""
        return len(self._accounts.get(_folded(text), ()) or self._names.get(_key(text), ())) == 1

    def has_name(self, text: str) -> bool:
        """Return whether at least one student has this name."""
        return bool(self._names.get(_key(text)))

    def find(self, said: Mapping[str, str]) -> str:
        """Return the id of the only student whom `said` means; raises `UnmatchedError`.

        >>> Roster([Listed("ana", "Ana", "Ruiz", lms_user_id="1001")]).find({"name": "Ruiz, Ana", "account": "1001"})
        'ana'
        """
        for text in _accounts_of(said):
            if found := self._accounts.get(_folded(text)):
                return self._only(found, text)
        for text in (said[key] for key in ("name", "known", "person") if key in said):
            # a number that the roster does not have is of another person of this name
            of_name = {
                student
                for student in self._names.get(_key(text), ())
                if not ("account" in said and self._numbers[student])
            }
            if of_name:
                return self._only(of_name, text)
        shown = next(said[key] for key in ("name", "alias", "known", "person", "login", "account") if key in said)
        number = f" ({said['account']})" if "account" in said else ""
        raise UnmatchedError(f"{shown!r:.80}{number} is not in the roster")

    def _only(self, found: set[str], text: str) -> str:
        if len(found) > 1:
            raise UnmatchedError(f"{text!r:.80} may be {' or '.join(sorted(found)[:3])}; give them an lms_user_id")
        return next(iter(found))


def _accounts_of(said: Mapping[str, str]) -> list[str]:
    """Return the texts in `said` that may be an account, the surest first."""
    accounts = [said[key] for key in ("account", "number", "alias", "sid", "email", "known") if key in said]
    for key in ("login", "person"):  # behind the assignment's title or the person's name, with any number of "_"
        pieces = said[key].split("_") if key in said else []
        accounts += ["_".join(pieces[start:]) for start in range(len(pieces))]
    return accounts or [said["name"]]


def _folded(text: str) -> str:
    return unicodedata.normalize("NFKC", text).casefold().strip()


def _words(text: str) -> tuple[str, ...]:
    """Return the words of a name without the marks within a word, as O'Neil has one."""
    return tuple(re.findall(r"[^\W_]+", re.sub(r"['’`´-]", "", _folded(text))))


def _key(text: str) -> tuple[str, ...]:
    return tuple(sorted(_words(text)))
