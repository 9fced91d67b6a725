"""Generate a class of any size with typical hand-ins: right, half right, mistaken, hostile, damaged, or none.

The students are not real: an id such as `full_07` or `damaged_02` names the kind of hand-in. Answers are taken from the
controls of an exercise and from the class in tests/submissions, so the marks of every member are known. The same seed
gives the same class.
"""

import ast
import csv
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from random import Random

from autograder.classroom.status import CommandError
from autograder.exercises import find, of_assignment
from autograder.exercises.quality.controls import controls
from autograder.exercises.registry import hidden_part
from autograder.host.exercise import REFERENCE
from demo.class_file import Member, read_class

STUB = 'raise NotImplementedError("Write your answer here, then run the check below.")'
OF_SIXTY = {
    "partial": 10,
    "mistaken": 8,
    "damaged": 7,
    "hostile": 6,
    "absent": 3,  # in the roster, but without a hand-in
    "split": 3,
    "copied": 2,  # two equal files
    "linked": 2,
    "untouched": 2,
    "outputs": 1,  # of sixty megabytes
}
"""Number of students of each kind in a class of sixty; the others have full marks. Smaller classes have one or more."""
SMALLEST = len(OF_SIXTY) + 1
COSTS_NOTHING = ("rename", "delete_check", "points_400", "script_in_markdown", "no_metadata_version", "several_copies")
COSTS_ALL = ("cut_off", "replace_by_text", "latin_1")
FIRST_LMS_ID = 1000
_WORTHLESS = re.compile(r"^Must get 0:", re.MULTILINE)

HOSTILE = (
    "import os\n\nprint('passed', flush=True)\nos._exit(0)\n",
    "import os\n\ndef {entry}(*given, **named):\n    os.kill(os.getppid(), 9)\n    raise SystemExit(0)\n",
    "class Yes:\n    def __eq__(self, _):\n        return True\n\n\ndef {entry}(*given, **named):\n    return Yes()\n",
)
"""Attacks for any exercise; tests/submissions/hostile has attacks for single exercises."""

Answer = tuple[str, float]  # the text of an answer cell and its marks


class TooSmallError(CommandError):
    """The class is too small for one student of each kind."""


def generated_class(assignment: str, students: int, *, answers: Path, seed: int = 1) -> tuple[Member, ...]:
    """Generate the members of a class for one `assignment`; `answers` is the folder tests/submissions.

    Raises `TooSmallError` for fewer than `SMALLEST` students.
    """
    if students < SMALLEST:
        raise TooSmallError(f"{students} students cannot hand in {SMALLEST} kinds of things; ask for more.")
    random = Random(f"{seed} {assignment}")
    counts = {kind: max(1, round(share * students / 60)) for kind, share in OF_SIXTY.items()}
    counts = {"full": students - sum(counts.values()), **counts}
    if counts["full"] < 1:
        counts |= {"full": students - len(OF_SIXTY)} | dict.fromkeys(OF_SIXTY, 1)
    pools = {exercise: _Pool(exercise, answers) for exercise in of_assignment(assignment)}
    return tuple(
        _member(kind, number, assignment, pools, random)
        for kind, count in counts.items()
        for number in range(1, count + 1)
    )


def write_roster(members: Sequence[Member], path: Path) -> None:
    """Write the class's roster, with numbers as a learning platform assigns them."""
    with path.open("w", newline="", encoding="utf-8") as file:
        rows = csv.writer(file)
        rows.writerow(("id", "lms_user_id"))
        rows.writerows((member.name, FIRST_LMS_ID + number) for number, member in enumerate(members))


class _Pool:
    """Answers to one exercise, grouped by their marks."""

    def __init__(self, exercise: str, answers: Path) -> None:
        part = hidden_part(exercise)
        assert part is not None, "only an instructor's installation makes a class"
        asked = find(exercise, hidden=True)
        self.most = asked.points
        members = read_class(answers)
        stated = [(m.kind, "\n".join(m.answers[exercise]), m.marks[exercise]) for m in members if exercise in m.answers]
        known = [(c.answer, float(c.marks)) for c in controls(exercise) if not c.below]
        known += [(text, marks) for kind, text, marks in stated if kind != "hostile"]
        self.right = next((c.answer, self.most) for c in part.controls if c.name == REFERENCE)
        # leave out endless loops: each takes a minute, and another test covers them
        self.wrong = [(text, marks) for text, marks in known if marks < self.most and "while True" not in text]
        self.half = [answer for answer in self.wrong if answer[1] > 0]
        self.hostile = [(text, marks) for kind, text, marks in stated if kind == "hostile"]
        self.hostile += [(text.format(entry=asked.entry_point), 0.0) for text in HOSTILE]
        for path in sorted((answers / "hostile" / exercise).glob("*.py")):
            text = path.read_text(encoding="utf-8")
            if _WORTHLESS.search(ast.get_docstring(ast.parse(text)) or ""):
                self.hostile.append((text, 0.0))


Pools = Mapping[str, _Pool]


def _right(pool: _Pool, place: int, random: Random) -> Answer:
    return pool.right


_TAKE: dict[str, Callable[[_Pool, int, Random], Answer]] = {
    "partial": lambda pool, place, random: (
        random.choice(pool.half) if pool.half else pool.right if place % 2 else (STUB, 0.0)
    ),
    "mistaken": lambda pool, place, random: random.choice(pool.wrong or [(STUB, 0.0)]),
    "hostile": lambda pool, place, random: random.choice(pool.hostile),
    "untouched": lambda pool, place, random: (STUB, 0.0),
}


def _member(kind: str, number: int, assignment: str, pools: Pools, random: Random) -> Member:
    name = f"{kind}_{number:02d}"
    if kind == "absent":
        return Member(name, kind, "Hands in nothing.", {}, {}, {})
    damage = _damage(kind, number)
    take = _TAKE.get(kind, _right)
    texts: dict[str, tuple[str, ...]] = {}
    marks: dict[str, float] = {}
    for place, (exercise, pool) in enumerate(pools.items()):
        text, earned = take(pool, place + number, random)
        # no two students hand in the same file, unless one copied it
        own = text if kind in ("copied", "untouched") else f"{text.rstrip()}\n\n# handed in by {name}\n"
        texts[exercise] = _halves(own) if kind == "split" else (own,)
        marks[exercise] = 0.0 if set(damage) & set(COSTS_ALL) else earned
    return Member(name, kind, f"Hands in: {kind}.", texts, marks, {assignment: damage} if damage else {})


def _damage(kind: str, number: int) -> tuple[str, ...]:
    if kind == "damaged":
        every = (*COSTS_ALL, *COSTS_NOTHING)
        return (every[(number - 1) % len(every)],)
    return {"linked": ("link_to_gradebook",), "outputs": ("outputs_of_60_mb",)}.get(kind, ())


def _halves(text: str) -> tuple[str, ...]:
    """Return two parts of the text; joined with a line break they give the text."""
    lines = text.split("\n")
    return "\n".join(lines[: len(lines) // 2]), "\n".join(lines[len(lines) // 2 :])
