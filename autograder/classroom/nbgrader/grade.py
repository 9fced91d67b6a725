"""Grade all submissions: from submitted/ to marks, feedback and report.

`autograder batch` runs it. If it is killed and run again, submissions in the journal are not graded again.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from nbgrader.api import Gradebook
from nbgrader.plugins import ExportPlugin

from autograder.classroom.batch import (
    ClassRun,
    Engine,
    Journal,
    fingerprint,
    grade_class,
    secret_seed,
    stage,
)
from autograder.classroom.hand_in import HandedIn, handed_in
from autograder.classroom.nbgrader.course import Course, NbgraderError
from autograder.classroom.nbgrader.export import CanvasExport, MarksExport
from autograder.classroom.nbgrader.gradebook_state import (
    enter_late_penalties,
    mark_entered,
    unchanged,
    wants_feedback,
    without_hand_in,
)
from autograder.classroom.nbgrader.quarantine import correct_submissions
from autograder.classroom.nbgrader.repair import NOTEBOOK_KEY
from autograder.classroom.report import (
    ClassSummary,
    Environment,
    checks_csv,
    class_html,
    class_json,
    class_text,
    summarise,
    this_environment,
)
from autograder.classroom.report.attention import Attention, Urgency
from autograder.host.records import SubmissionRecord
from autograder.host.report.safe_text import one_line
from autograder.host.report.wording import marks


@dataclass(frozen=True)
class Graded:
    """The result of grading a class."""

    records: tuple[SubmissionRecord, ...]  # with the notes on repairs
    from_journal: int
    failures: tuple[str, ...]  # one sentence for each submission that nbgrader refused
    csv: Path
    page: Path
    text: str  # the report for a terminal


def grade_course(
    course: Course,
    assignments: Sequence[str] = (),
    *,
    engine: Engine,
    report: Path,
    title: str = "Class report",
) -> Graded:
    """Correct folders, grade, enter marks, make feedback, export, report. Progress goes to the terminal."""
    chosen = tuple(assignments) or course.assignments
    for done in correct_submissions(course.submitted, course.quarantine, chosen):
        print(f"Set right: {one_line(done.student)} {done.assignment}: {one_line(done.sentence)}")
    hand_ins = handed_in(course.submitted, chosen, course.quarantine)
    seed = secret_seed(course.seed_file)
    run = _grade(course, hand_ins, engine, seed)
    failures = _enter(course, dict(zip(hand_ins, run.records, strict=True)))
    records = tuple(_with_repairs(course, record) for record in run.records)
    environment = this_environment(("secret seed, fingerprint", fingerprint(seed)))
    absent = [
        Attention(Urgency.COULD, f"{len(students)} students", name, f"Handed in nothing: {', '.join(students)}.")
        for name, students in without_hand_in(course, hand_ins).items()
    ]
    page, text = _write_report(summarise(records, absent), report, title, environment)
    csv = export_csv(course, course.journal.parent / "grades.csv", {hand_in.assignment for hand_in in hand_ins})
    return Graded(records, run.from_journal, failures, csv, page, text)


def _enter(course: Course, graded: Mapping[HandedIn, SubmissionRecord]) -> tuple[str, ...]:
    """Enter the missing marks in the gradebook and make feedback; return a sentence for each hand-in that failed."""
    there = unchanged(course, graded.items())
    if there:
        print(f"The gradebook holds {len(there)} of {len(graded)} marks already; they are left as they are.")
    entered, failures = _each(course, "autograde", "Enter marks", [one for one in graded if one not in there])
    mark_entered(course, [(one, graded[one]) for one in entered])
    reviewed = wants_feedback(course, there)
    enter_late_penalties(course, reviewed)
    due = {*entered, *reviewed}
    _, more = _each(course, "generate_feedback", "Feedback", [one for one in graded if one in due])
    return (*failures, *more)


def _write_report(summary: ClassSummary, folder: Path, title: str, environment: Environment) -> tuple[Path, str]:
    """Write the report as HTML page, text and data; return the page's path and the text."""
    text = class_text(summary, title=title, environment=environment)
    folder.mkdir(parents=True, exist_ok=True)
    page = folder / "index.html"
    page.write_text(class_html(summary, title=title, environment=environment), encoding="utf-8")
    (folder / "report.txt").write_text(text, encoding="utf-8")
    data = class_json(summary, title=title, environment=environment)
    (folder / "report.json").write_text(data, encoding="utf-8")
    (folder / "checks.csv").write_text(checks_csv(summary), encoding="utf-8", newline="")
    return page, text


def _grade(course: Course, hand_ins: Sequence[HandedIn], engine: Engine, seed: int) -> ClassRun:
    # close the journal before nbgrader's step runs, which appends missing records to it
    with Journal(course.journal) as journal:
        known = sum(hand_in.key in journal for hand_in in hand_ins)
        if known:
            print(f"The journal holds {known} of {len(hand_ins)} records already; they are not graded again.")
        with stage("Grade", len(hand_ins) - known) as advance:

            def tell(record: SubmissionRecord) -> None:
                advance(f"{one_line(record.student)}, {record.assignment}: {marks(record.points, record.max_points)}")

            return grade_class(hand_ins, journal, engine=engine, seed=seed, on_record=tell)


def _each(course: Course, step: str, name: str, hand_ins: Sequence[HandedIn]) -> tuple[list[HandedIn], list[str]]:
    """Run one step of nbgrader for every hand-in, one at a time, because the gradebook allows only one writer.

    Returns the hand-ins that succeeded, and a sentence for each one that failed.
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
    """Return the record with notes on the repairs made for nbgrader, which did not change the marks."""
    path = course.autograded / record.student / record.assignment / f"{record.assignment}.ipynb"
    if not path.exists():
        return record
    repairs = json.loads(path.read_text())["metadata"].get(NOTEBOOK_KEY, {}).get("notes", [])
    return replace(record, notes=tuple(dict.fromkeys((*record.notes, *repairs))))


def export_csv(course: Course, path: Path, assignments: Iterable[str] = ()) -> Path:
    """Write the gradebook's marks in nbgrader's format, and in Canvas's format if the roster has Canvas's numbers.

    Assignments without any submission that are not in `assignments` are left out, because their marks would all be 0.
    """
    with course.gradebook() as gradebook:
        known = sorted({*assignments, *(a.name for a in gradebook.assignments if a.submissions)})
        _export(MarksExport(assignment=known), gradebook, path)
        if any(student.lms_user_id for student in gradebook.students):
            _export(CanvasExport(assignment=known), gradebook, path.with_name("canvas.csv"))
    return path


def _export(plugin: ExportPlugin, gradebook: Gradebook, path: Path) -> None:
    """Write a file completely or not at all, so that a full disk does not destroy the file of an earlier run."""
    plugin.to = str(path.with_suffix(".part"))
    plugin.export(gradebook)
    Path(plugin.to).replace(path)
