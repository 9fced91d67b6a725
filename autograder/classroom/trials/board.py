"""The board: the best ratio of each student in each exercise, under pseudonyms, apart from all marks.

A pseudonym is keyed with the course's secret seed, so nobody else can compute it from a name; it stays the same for
the whole course. The file of ratios holds pseudonyms, too. The page lies in the exchange, where all students can read
it. Only an answer that passes every visible check is on it, and no ratio that a person has to review first.
"""

import base64
import functools
import hashlib
import hmac
import json
import os
from dataclasses import asdict, dataclass
from pathlib import Path

from autograder.classroom.batch import secret_seed
from autograder.host.records import ExerciseRecord, SpeedVerdict
from autograder.host.report.safe_text import Html, element, joined

SIGNS = 8  # of a pseudonym: 40 bits
NOT_SHOWN = (SpeedVerdict.ENVIRONMENT, SpeedVerdict.INCONCLUSIVE)
_TITLE = "Fastest answers"
_POLICY = "default-src 'none'; style-src 'unsafe-inline'"
_EXPLAINED = (
    "How many times as fast as its baseline each answer was, when it was tried on the course's machine: the best of "
    "each. Names are made up, and only you were told yours. This page counts for no mark."
)


@dataclass(frozen=True)
class Entry:
    """The ratio of one trial."""

    exercise: str
    pseudonym: str
    ratio: float


@dataclass(frozen=True)
class Board:
    """The ratios in the file `kept`, and the `page` that shows the best of them."""

    kept: Path
    page: Path
    seed_file: Path

    def pseudonym(self, account: str) -> str:
        """Return the pseudonym of an account, e.g. `"k3vq-7xdm"`."""
        digest = hmac.digest(_key(self.seed_file), account.encode(), "sha256")
        text = base64.b32encode(digest).decode().lower()[:SIGNS]
        return f"{text[: SIGNS // 2]}-{text[SIGNS // 2 :]}"

    def enter(self, account: str, record: ExerciseRecord) -> str:
        """Add the ratio of a trial if the board shows such, and return a sentence for the student, else nothing."""
        speed = record.speed
        if speed is None or speed.verdict in NOT_SHOWN or speed.flags or record.points < record.max_points:
            return ""
        entry = Entry(record.id, self.pseudonym(account), round(speed.ratio, 3))
        opened = os.open(self.kept, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            os.write(opened, f"\n{json.dumps(asdict(entry))}".encode())  # a new line, whatever ended an earlier write
        finally:
            os.close(opened)
        self.write()
        return f"On the board you are {entry.pseudonym}."

    def write(self) -> None:
        """Write the page; it appears complete or not at all."""
        part = self.page.with_name(f".{self.page.name}.{os.getpid()}")
        part.write_text(_page(self.best()), encoding="utf-8")
        part.chmod(0o644)
        part.replace(self.page)

    def best(self) -> dict[str, list[Entry]]:
        """Return the best entry of each student, by exercise, fastest first."""
        best: dict[tuple[str, str], Entry] = {}
        lines = self.kept.read_text(encoding="utf-8").splitlines() if self.kept.is_file() else []
        for line in lines:
            try:
                entry = Entry(**json.loads(line))
            except (ValueError, TypeError):  # empty, or a line that was not finished
                continue
            key = (entry.exercise, entry.pseudonym)
            best[key] = max(entry, best.get(key, entry), key=lambda one: one.ratio)
        exercises: dict[str, list[Entry]] = {}
        for entry in sorted(best.values(), key=lambda one: (one.exercise, -one.ratio, one.pseudonym)):
            exercises.setdefault(entry.exercise, []).append(entry)
        return exercises


def _page(best: dict[str, list[Entry]]) -> str:
    sections: list[Html] = []
    for exercise, entries in best.items():
        rows = (
            element("tr", element("td", f"{place}"), element("td", one.pseudonym), element("td", f"{one.ratio:.2f}"))
            for place, one in enumerate(entries, start=1)
        )
        head = element("tr", element("th", "place"), element("th", "name"), element("th", "ratio"))
        sections.append(joined(element("h2", exercise), element("table", head, *rows)))
    body = element("main", element("h1", _TITLE), element("p", _EXPLAINED), *sections)
    return (
        f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>{_TITLE}</title>'
        f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}"><style>'
        "body{font:16px/1.5 system-ui,sans-serif;margin:2em auto;max-width:40em;padding:0 1em}"
        "td,th{text-align:left;padding:2px 24px 2px 0}</style></head>\n"
        f"<body>{body}</body></html>\n"
    )


@functools.cache
def _key(seed_file: Path) -> bytes:
    # slow on purpose: whoever knows a name and its pseudonym must not be able to try all seeds
    seed = str(secret_seed(seed_file)).encode()
    return hashlib.scrypt(seed, salt=b"pseudonyms of the board", n=2**14, r=8, p=1, dklen=32)
