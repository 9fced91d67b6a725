"""Grade everything that was handed in, and give it back: from submitted/ to marks, feedback and report.

    python -m autograder.host.nbgrader.grade [ASSIGNMENT ...] [--sandbox auto|1..5] [--i-trust-this-code]

Killed and run again, it goes on where it was: what the journal holds is not graded twice. Exit status: 0 done, whatever
the marks · 2 wrong usage · 4 something could not be graded, for no fault of a student.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from nbgrader.api import Gradebook
from nbgrader.plugins import CsvExportPlugin

from autograder.host.batch import (
    ClassRun,
    HandedIn,
    Journal,
    JournalError,
    fingerprint,
    grade_class,
    handed_in,
    secret_seed,
    stage,
)
from autograder.host.nbgrader.course import Course, NbgraderError, open_course
from autograder.host.nbgrader.guard import guard_submissions, notes_for
from autograder.host.nbgrader.repair import NOTEBOOK_KEY
from autograder.host.records import SubmissionRecord
from autograder.host.report import Environment, class_html, class_text, summarise, this_environment
from autograder.host.report.safe_text import one_line
from autograder.host.report.wording import marks
from autograder.host.sandbox import Sandbox, SandboxError, open_sandbox

DONE, WRONG_USAGE, OUR_FAILURE = 0, 2, 4


@dataclass(frozen=True)
class Graded:
    """What a grading of the class left behind."""

    records: tuple[SubmissionRecord, ...]  # with the notes on repairs
    from_journal: int
    failures: tuple[str, ...]  # one sentence for each submission that nbgrader did not take
    csv: Path
    page: Path
    text: str  # the page's twin


def grade_course(
    course: Course,
    assignments: Sequence[str] = (),
    *,
    sandbox: Sandbox,
    report: Path,
    title: str = "Class report",
    slots: int | None = None,
) -> Graded:
    """Guard, grade, import into nbgrader, give feedback, export, report. Progress goes to the terminal."""
    chosen = tuple(assignments) or course.assignments
    for done in guard_submissions(course.submitted, course.aside, chosen):
        print(f"Set right: {one_line(done.student)} {done.assignment}: {one_line(done.sentence)}")
    found = handed_in(course.submitted, chosen)
    hand_ins = [replace(hand_in, notes=notes_for(hand_in.path, course.aside)) for hand_in in found]
    seed = secret_seed(course.seed_file)
    run = _grade(course, hand_ins, sandbox, seed, slots)
    entered, failures = _each(course, "autograde", "Enter marks", hand_ins)
    _, more = _each(course, "generate_feedback", "Feedback", entered)
    records = tuple(_with_repairs(course, record) for record in run.records)
    environment = this_environment(("secret seed, fingerprint", fingerprint(seed)))
    page, text = _write_report(records, report, title, environment)
    csv = export_csv(course, course.journal.parent / "grades.csv")
    return Graded(records, run.from_journal, (*failures, *more), csv, page, text)


def _write_report(
    records: Sequence[SubmissionRecord], folder: Path, title: str, environment: Environment
) -> tuple[Path, str]:
    """Write the page and its twin; returns the page's path and the twin."""
    summary = summarise(records)
    text = class_text(summary, title=title, environment=environment)
    folder.mkdir(parents=True, exist_ok=True)
    page = folder / "index.html"
    page.write_text(class_html(summary, title=title, environment=environment), encoding="utf-8")
    (folder / "report.txt").write_text(text, encoding="utf-8")
    return page, text


def _grade(course: Course, hand_ins: Sequence[HandedIn], sandbox: Sandbox, seed: int, slots: int | None) -> ClassRun:
    # the journal is closed again before nbgrader's step reads it, which must be able to write down what is missing
    with Journal(course.journal) as journal:
        known = sum(hand_in.key in journal for hand_in in hand_ins)
        if known:
            print(f"The journal holds {known} of {len(hand_ins)} records already; they are not graded again.")
        with stage("Grade", len(hand_ins) - known) as advance:

            def tell(record: SubmissionRecord) -> None:
                advance(f"{one_line(record.student)}, {record.assignment}: {marks(record.points, record.max_points)}")

            return grade_class(hand_ins, journal, sandbox=sandbox, seed=seed, slots=slots, on_record=tell)


def _each(course: Course, step: str, name: str, hand_ins: Sequence[HandedIn]) -> tuple[list[HandedIn], list[str]]:
    """One step of nbgrader for every hand-in, one at a time: its gradebook takes one writer.

    Returns the hand-ins that went well, and a sentence for each that did not.
    """
    well: list[HandedIn] = []
    failures: list[str] = []
    with stage(name, len(hand_ins)) as advance:
        for hand_in in hand_ins:
            try:
                course.do(step, hand_in.assignment, hand_in.student)
                well.append(hand_in)
            except NbgraderError as error:
                failures.append(str(error))
            advance(f"{one_line(hand_in.student)}, {hand_in.assignment}")
    return well, failures


def _with_repairs(course: Course, record: SubmissionRecord) -> SubmissionRecord:
    """The record with what was repaired in the notebook for nbgrader's sake, which did not touch the marks."""
    path = course.autograded / record.student / record.assignment / f"{record.assignment}.ipynb"
    if not path.exists():
        return record
    repairs = json.loads(path.read_text())["metadata"].get(NOTEBOOK_KEY, {}).get("notes", [])
    return replace(record, notes=tuple(dict.fromkeys((*record.notes, *repairs))))


def export_csv(course: Course, path: Path) -> Path:
    """Write the gradebook's marks as nbgrader exports them."""
    plugin = CsvExportPlugin()
    plugin.to = str(path)
    with Gradebook(course.api.coursedir.db_url, course.api.coursedir.course_id) as gradebook:
        plugin.export(gradebook)
    return path


def main(arguments: Sequence[str] | None = None) -> int:
    """Grade from the command line."""
    options = _options(arguments)
    course = open_course()
    unknown = [name for name in options.assignments if name not in course.assignments]
    if unknown:
        there = ", ".join(course.assignments)
        print(f"grade: no assignment is called {unknown[0]!r}; there are {there}.", file=sys.stderr)
        return WRONG_USAGE
    if not handed_in(course.submitted, options.assignments or course.assignments):
        where = course.submitted / "STUDENT" / "ASSIGNMENT"
        print(f"grade: nothing was handed in; notebooks belong into {where}.", file=sys.stderr)
        return WRONG_USAGE
    try:
        level = options.sandbox if options.sandbox == "auto" else int(options.sandbox)
        sandbox = open_sandbox(level, trust=options.i_trust_this_code)
        graded = grade_course(course, options.assignments, sandbox=sandbox, report=course.journal.parent / "report")
    except (SandboxError, JournalError, OSError) as error:
        print(f"grade: {error}", file=sys.stderr)
        return OUR_FAILURE
    print(f"\n{graded.text}\nreport {graded.page}\nmarks  {graded.csv}")
    for failure in graded.failures:
        print(f"grade: {failure}", file=sys.stderr)
    return OUR_FAILURE if graded.failures else DONE


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    style = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(prog="grade", description=__doc__, formatter_class=style)
    parser.add_argument("assignments", nargs="*", metavar="ASSIGNMENT")
    parser.add_argument("--sandbox", choices=("auto", "1", "2", "3", "4", "5"), default="auto", help="isolation level")
    parser.add_argument("--i-trust-this-code", action="store_true", help="allow level 5, which isolates nothing")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    sys.exit(main())
