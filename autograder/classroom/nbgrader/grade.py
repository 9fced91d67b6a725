"""Grade all submissions: from submitted/ to marks, feedback and report.

`autograder batch` runs it. If it is killed and run again, submissions in the journal are not graded again.
"""

import itertools
import json
import os
from collections.abc import Collection, Iterable, Iterator, Sequence
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
    is_final,
    secret_seed,
    stage,
)
from autograder.classroom.exercise_versions import out_of_date
from autograder.classroom.hand_in import HandedIn, folders_handed_in, read_hand_in, unread
from autograder.classroom.nbgrader.course import Course
from autograder.classroom.nbgrader.dropped import enter_dropped, told
from autograder.classroom.nbgrader.entry import enter
from autograder.classroom.nbgrader.export import CanvasExport, MarksExport, write_marks
from autograder.classroom.nbgrader.extensions import extended
from autograder.classroom.nbgrader.gradebook_state import SetAside, without_hand_in
from autograder.classroom.nbgrader.late_penalties import with_lateness
from autograder.classroom.nbgrader.left_out import to_decide
from autograder.classroom.nbgrader.points_by_hand import with_changed_marks, with_points_by_hand
from autograder.classroom.nbgrader.quarantine import STUDENT, Correction, correct_submissions, put_aside
from autograder.classroom.nbgrader.repair import NOTEBOOK_KEY
from autograder.classroom.report import (
    ClassSummary,
    Environment,
    checks_csv,
    class_json,
    class_pages,
    class_text,
    summarise,
    this_environment,
)
from autograder.classroom.report.attention import Attention, Urgency
from autograder.classroom.report.page import INDEX
from autograder.classroom.report.similar_page import SIMILAR
from autograder.classroom.similarity import alike_pairs
from autograder.classroom.term.due_dates import enter_due_dates
from autograder.host.records import SubmissionRecord
from autograder.host.report.safe_text import one_line
from autograder.host.report.wording import marks


@dataclass(frozen=True)
class Graded:
    """The result of grading a class."""

    records: tuple[SubmissionRecord, ...]  # with the notes on repairs, and the points that a person gave
    from_journal: int
    failures: tuple[str, ...]  # one sentence for each hand-in that was set aside, whole or without feedback
    marked: int  # hand-ins whose marks are in the gradebook
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
    seed = secret_seed(course.seed_file)
    with course.gradebook() as gradebook:
        enter_due_dates(gradebook, course.rules())
    corrections = correct_submissions(course.submitted, course.quarantine, chosen, course.assignments)
    for done in corrections:
        print(f"Folder {one_line('/'.join(filter(None, (done.student, done.assignment))))}: {one_line(done.sentence)}")
    dropped = enter_dropped(course)
    hand_ins = list(_read(course, chosen, corrections))
    run = _grade(course, hand_ins, engine, seed)
    aside, marked = enter(course, dict(zip(hand_ins, run.records, strict=True)))
    records, by_person = with_changed_marks(course, [_with_repairs(course, record) for record in run.records])
    records, unread = with_points_by_hand(course, records, dropped)
    records, late = with_lateness(course, [_counted(record, dropped) for record in records])
    environment = this_environment(("secret seed, fingerprint", fingerprint(seed)))
    stale = out_of_date(record for record in run.records if is_final(record))
    more_time = extended(course, {(one.assignment, one.student) for one in hand_ins})
    entries = [unread, by_person, stale, more_time, late, told(dropped), to_decide(course, hand_ins, chosen)]
    also = [*itertools.chain(*entries, _to_look_at(course, corrections, aside, run))]
    absent, alike = without_hand_in(course, hand_ins), alike_pairs(hand_ins, run.records)
    summary = summarise(records, also, absent=absent, names=_names(course), alike=alike)
    page, text = _write_report(summary, report, title, environment)
    write_marks(course)
    csv = export_csv(course, course.journal.parent / "grades.csv", {hand_in.assignment for hand_in in hand_ins})
    return Graded(records, run.from_journal, _failures(course, corrections, aside), marked, csv, page, text)


def _read(course: Course, chosen: Sequence[str], corrections: Sequence[Correction]) -> Iterator[HandedIn]:
    """Read all hand-ins; one whose folder is not safe to read is not read, and gets that as the reason."""
    unsafe = {(done.student, done.assignment): done.sentence for done in corrections if done.failed}
    for folder in folders_handed_in(course.submitted, chosen):
        assignment, student, path = folder.name, folder.parent.name, folder / f"{folder.name}.ipynb"
        fault = unsafe.get((student, assignment)) or unsafe.get((student, ""))
        if fault and STUDENT.fullmatch(student):
            yield unread(assignment, student, path, fault)
        elif not fault:
            yield read_hand_in(assignment, student, path, course.quarantine).without_notebook()


def _counted(record: SubmissionRecord, dropped: Collection[str]) -> SubmissionRecord:
    """Return the record with the dropped exercises marked as such, for the report."""
    return replace(record, exercises=tuple(replace(e, counts=e.id not in dropped) for e in record.exercises))


def _names(course: Course) -> dict[str, str]:
    """Return what the roster calls each student: first and last name, by id."""
    with course.gradebook() as gradebook:
        return {s.id: " ".join(filter(None, (s.first_name, s.last_name))) for s in gradebook.students}


def _to_look_at(
    course: Course, corrections: Sequence[Correction], aside: Sequence[SetAside], run: ClassRun
) -> Iterator[Attention]:
    """Yield what was set aside, and is in no record: folders in this and earlier runs, and steps after the grading."""
    for name in put_aside(course.quarantine):
        sentence = f"No student's folder, kept in {course.quarantine}; if it is a hand-in, put it back under an id."
        yield Attention(Urgency.MUST, name, course.submitted.name, sentence)
    for done in corrections:
        if not done.assignment and os.path.lexists(course.submitted / done.student):
            urgency = Urgency.MUST if done.failed else Urgency.SHOULD
            yield Attention(urgency, done.student, course.submitted.name, done.sentence)
    told = {(record.student, record.assignment) for record in run.unfinished}  # by their records
    for one in aside:
        if (one.hand_in.student, one.hand_in.assignment) not in told:
            yield Attention(Urgency.MUST, one.hand_in.student, one.hand_in.assignment, one.sentence)


def _failures(course: Course, corrections: Sequence[Correction], aside: Sequence[SetAside]) -> tuple[str, ...]:
    """Return a sentence for each hand-in or folder without marks or without feedback."""
    read = {
        place for one in aside for place in ((one.hand_in.student, one.hand_in.assignment), (one.hand_in.student, ""))
    }
    unsafe = [done for done in corrections if done.failed and (done.student, done.assignment) not in read]
    return (
        *(f"{one_line(name)}: no student's folder; it was put aside." for name in put_aside(course.quarantine)),
        *(f"{one_line(done.student)}: {one_line(done.sentence)}" for done in unsafe),
        *(f"{one.hand_in.assignment} of {one_line(one.hand_in.student)}: {one_line(one.sentence)}" for one in aside),
    )


def _write_report(summary: ClassSummary, folder: Path, title: str, environment: Environment) -> tuple[Path, str]:
    """Write the report as pages, text and data; return the first page's path and the text."""
    text = class_text(summary, title=title, environment=environment)
    pages = class_pages(summary, title=title, environment=environment)
    for path, page in pages.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(page, encoding="utf-8")
    for old in {*folder.glob("students/*.html"), folder / SIMILAR} - {folder / path for path in pages}:
        old.unlink(missing_ok=True)  # of an earlier report
    (folder / "report.txt").write_text(text, encoding="utf-8")
    data = class_json(summary, title=title, environment=environment)
    (folder / "report.json").write_text(data, encoding="utf-8")
    (folder / "checks.csv").write_text(checks_csv(summary), encoding="utf-8", newline="")
    return folder / INDEX, text


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


def _with_repairs(course: Course, record: SubmissionRecord) -> SubmissionRecord:
    """Return the record with notes on the repairs made for nbgrader, which did not change the marks."""
    path = course.autograded / record.student / record.assignment / f"{record.assignment}.ipynb"
    try:
        repairs = json.loads(path.read_text(encoding="utf-8"))["metadata"].get(NOTEBOOK_KEY, {}).get("notes", [])
    except Exception:  # there is none, or it is not as nbgrader wrote it; the marks are in the record
        return record
    return replace(record, notes=tuple(dict.fromkeys((*record.notes, *repairs))))


def export_csv(course: Course, path: Path, assignments: Iterable[str] = ()) -> Path:
    """Write the gradebook's marks in nbgrader's format, and in Canvas's format if the roster has Canvas's numbers.

    Assignments without any submission that are not in `assignments` are left out, because their marks would all be 0.
    So are those that the course does not use.
    """
    with course.gradebook() as gradebook:
        handed_in = {a.name for a in gradebook.assignments if a.submissions} & {*course.assignments}
        known = sorted({*assignments, *handed_in})
        _export(MarksExport(assignment=known, config=course.api.config), gradebook, path)
        if any(student.lms_user_id for student in gradebook.students):
            _export(CanvasExport(assignment=known), gradebook, path.with_name("canvas.csv"))
    return path


def _export(plugin: ExportPlugin, gradebook: Gradebook, path: Path) -> None:
    """Write a file completely or not at all, so that a full disk does not destroy the file of an earlier run."""
    plugin.to = str(path.with_suffix(".part"))
    plugin.export(gradebook)
    Path(plugin.to).replace(path)
