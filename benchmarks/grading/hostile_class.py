"""Grade a class of odd notebooks, folders and names with ten good hand-ins among them, twice.

    python -m benchmarks.grading.hostile_class [--hand-ins 300] [--seed 0] [--quick] [--work FOLDER]

`autograder batch` runs as a process of its own, as on an instructor's machine. Each run must end with status 0, give
the ten all marks and a page of feedback, and name every hand-in that it leaves without a mark. The second run must
leave the marks as they are. Exit status 1 if anything is otherwise.
"""

import argparse
import csv
import json
import os
import random
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from autograder.classroom.nbgrader.course import Course, open_course
from autograder.classroom.nbgrader.release import release
from benchmarks.grading.class_trials.odd_folders import STUDENTS, odd_folder
from benchmarks.grading.class_trials.odd_notebooks import odd_notebook

ROOT = Path(__file__).parents[2]
NAME = "00_start_here"  # its exercises take the least time
GOOD = 10
TIMESTAMP = "2026-01-15 12:00:00 UTC"
Batch = Callable[[], tuple[int, str]]  # grades the class; returns the exit status and what was printed


@dataclass
class Outcome:
    """The results of both runs."""

    changes: Counter[str] = field(default_factory=Counter)  # how often each change was drawn
    seconds: list[float] = field(default_factory=list)
    good: list[int] = field(default_factory=list)  # of the good ones, how many had all marks and feedback
    marked: int = 0
    unmarked: int = 0  # hand-ins without a mark after the last run
    faults: list[str] = field(default_factory=list)


def right_notebook(course: Course) -> dict[str, Any]:
    """Return the released notebook with the solutions as answers."""
    source = json.loads((course.source / NAME / f"{NAME}.ipynb").read_text("utf-8"))
    answers = {_id(cell): cell["source"] for cell in source["cells"] if _id(cell)}
    notebook: dict[str, Any] = json.loads((course.release / NAME / f"{NAME}.ipynb").read_text("utf-8"))
    for cell in notebook["cells"]:
        if cell["metadata"].get("nbgrader", {}).get("solution"):
            cell["source"] = answers[_id(cell)]
    return notebook


def _id(cell: dict[str, Any]) -> str:
    return str(cell["metadata"].get("nbgrader", {}).get("grade_id", ""))


def make_class(course: Course, count: int, draw: random.Random) -> Counter[str]:
    """Write ten good hand-ins and `count` odd ones into submitted/; return how often each change was drawn."""
    right, changes = right_notebook(course), Counter[str]()
    for number in range(GOOD):
        _hand_in(course, f"good_{number}", json.dumps(right).encode())
    names = [f"odd_{number:03d}" for number in range(count)]
    odd_names = draw.sample(STUDENTS, min(len(STUDENTS), count // 4))
    names[: len(odd_names)] = odd_names
    for name in names:
        content, what = odd_notebook(right, draw) if draw.random() < 0.7 else (json.dumps(right).encode(), "")
        try:
            folder = _hand_in(course, name, content)
        except OSError:
            continue  # a name that this file system does not take is no student's
        if draw.random() < 0.5:
            what = f"{what} {odd_folder(folder, draw)}"
        changes.update(what.split() + (["student_names"] if name in STUDENTS else []))
    if count >= len(STUDENTS):
        (course.submitted / "a file").write_text("not a folder")
        (course.submitted / "twin").symlink_to("good_0")
    return changes


def _hand_in(course: Course, student: str, content: bytes) -> Path:
    folder = course.submitted / student / NAME
    folder.mkdir(parents=True)
    (folder / f"{NAME}.ipynb").write_bytes(content)
    (folder / "timestamp.txt").write_text(TIMESTAMP)
    return folder


def run(course: Course, count: int, draw: random.Random, batch: Batch) -> Outcome:
    """Make the class, grade it twice with `batch`, and hold both results against what is required."""
    outcome = Outcome(make_class(course, count, draw))
    earlier: dict[str, str] = {}
    for _ in range(2):
        started = time.monotonic()
        status, printed = batch()
        outcome.seconds.append(time.monotonic() - started)
        if status != 0:
            outcome.faults.append(f"exit status {status}: {printed[-400:]}")
        marks = marks_of(course)
        outcome.good.append(sum(_is_whole(course, marks, f"good_{number}") for number in range(GOOD)))
        outcome.faults += [] if outcome.good[-1] == GOOD else [f"only {outcome.good[-1]} of {GOOD} good ones are whole"]
        outcome.faults += _unnamed(course, marks, printed)
        outcome.faults += [
            f"{who!r} had {earlier[who]!r}, now {mark!r}"
            for who, mark in marks.items()
            if earlier.get(who, mark) != mark
        ]
        earlier = marks
    outcome.marked = sum(mark != "" for mark in earlier.values())
    outcome.unmarked = len(earlier) - outcome.marked
    return outcome


def marks_of(course: Course) -> dict[str, str]:
    """Return the text of each mark in grades.csv, by student; empty for a hand-in that was never scored."""
    path = course.journal.parent / "grades.csv"
    if not path.is_file():
        return {}
    with path.open(newline="", encoding="utf-8") as file:
        return {row["student_id"]: row["score"] for row in csv.DictReader(file)}


def _is_whole(course: Course, marks: dict[str, str], student: str) -> bool:
    page = course.feedback / student / NAME / f"{NAME}.html"
    return marks.get(student) == "5.0" and page.is_file() and "00_read_a_table" in page.read_text("utf-8")


def _unnamed(course: Course, marks: dict[str, str], printed: str) -> list[str]:
    """Return a sentence for each hand-in that has neither a mark nor a line for a person."""
    aside = printed.partition("set aside, each for a person:")[2]
    folders = [path.parent.name for path in course.submitted.glob(f"*/{NAME}")]
    without = [who for who in (*folders, *marks) if not marks.get(who)]
    return [
        f"{who!r} has no mark and is not named" for who in dict.fromkeys(without) if " ".join(who.split()) not in aside
    ]


def batch(work: Path) -> tuple[int, str]:
    """Run `autograder batch` below `work`."""
    command = [sys.executable, "-m", "autograder", "batch", "--assignment", NAME]
    done = subprocess.run(
        command,
        cwd=ROOT,
        env={**os.environ, "COURSE_WORK": str(work)},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
    )
    with (work / "printed.txt").open("a") as file:
        file.write(done.stdout)
    return done.returncode, done.stdout


def main() -> int:
    """Print the table; see the module."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--hand-ins", type=int, default=300, help="odd ones, beside the ten good ones")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--quick", action="store_true", help="12 odd hand-ins")
    parser.add_argument("--work", type=Path, metavar="FOLDER", help="keep what was made there; it must not exist")
    options = parser.parse_args()
    load = os.getloadavg()[0]
    with tempfile.TemporaryDirectory() as folder:
        work = (options.work or Path(folder) / "work").resolve()
        os.environ["COURSE_WORK"] = str(work)
        course = open_course(ROOT)
        release(course, [NAME])
        count = 12 if options.quick else options.hand_ins
        outcome = run(course, count, random.Random(options.seed), lambda: batch(work))
    print(f"odd hand-ins, good ones           {count}, {GOOD}")
    print(f"load before it began              {load:.1f}")
    print(f"good ones whole, first and second {', '.join(map(str, outcome.good))}")
    print(f"hand-ins with a mark, set aside   {outcome.marked}, {outcome.unmarked}")
    print(f"seconds, first and second         {', '.join(f'{seconds:.0f}' for seconds in outcome.seconds)}")
    print(f"changes drawn                     {', '.join(f'{name} {n}' for name, n in outcome.changes.most_common())}")
    for fault in outcome.faults:
        print(f"FAULT {fault}")
    return 1 if outcome.faults else 0


if __name__ == "__main__":
    sys.exit(main())
