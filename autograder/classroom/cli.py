"""The command line: `grade` a notebook, a class with `batch`, `check` one answer, list `exercises`, explain `sandbox`.

Exit status: 0 done, whatever the marks · 1 a check of quality failed · 2 wrong usage · 3 submission not gradable, or
release refused · 4 our own failure.
"""

import argparse
import hashlib
import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rich.console import Console

from autograder.classroom.batch import stage
from autograder.classroom.batch_command import add_batch
from autograder.classroom.disputes import add_explain
from autograder.classroom.hand_in import grade_answers
from autograder.classroom.nbgrader.left_out import add_left_out
from autograder.classroom.new_exercise import MISTAKES, write_exercise
from autograder.classroom.platforms.platform_results import FORMATS, results_json
from autograder.classroom.regrade import add_regrade
from autograder.classroom.sandbox_options import add_sandbox, open_chosen
from autograder.classroom.status import DIFFERENT, DONE, OUR_FAILURE, UsageError, run_command
from autograder.classroom.submission import SubmissionError, read_bytes, read_submission
from autograder.classroom.trials import add_serve_trials
from autograder.classroom.week_commands import add_week
from autograder.exercises import all_exercises, find
from autograder.exercises.quality.survey import failing, quality_json, quality_text, survey
from autograder.host.grading import grade_exercise, new_seed
from autograder.host.records import ExerciseStatus, SandboxRecord, SubmissionRecord
from autograder.host.report import exercise_text
from autograder.host.sandbox import describe, open_sandbox

MOST_DAYS = 366


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit status."""
    options = _parser().parse_args(arguments)
    return run_command("autograder", lambda: int(options.run(options)))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="autograder", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    grade = commands.add_parser("grade", help="grade all exercises of one notebook")
    grade.add_argument("submission", type=Path, metavar="SUBMISSION.ipynb")
    grade.set_defaults(run=_grade)
    for add in (add_week, add_batch, add_regrade, add_explain, add_serve_trials, add_left_out):
        add(commands)
    release = commands.add_parser("release", help="build the students' notebooks, without solutions")
    release.add_argument("assignment", nargs="*", metavar="NAME", help="by default all of them")
    release.set_defaults(run=_release)
    _add_extend(commands)
    roster = commands.add_parser("roster", help="put the students of a CSV file into the gradebook")
    roster.add_argument(
        "file",
        type=Path,
        metavar="FILE.csv",
        help="columns id, first_name, last_name, email, lms_user_id, or a list that Canvas or Moodle exported",
    )
    roster.set_defaults(run=_roster)
    check = commands.add_parser("check", help="grade one answer from a Python file")
    check.add_argument("exercise", metavar="EXERCISE")
    check.add_argument("file", type=Path, metavar="FILE.py")
    check.add_argument(
        "--hidden", action=argparse.BooleanOptionalAction, default=True, help="also run the hidden checks"
    )
    check.set_defaults(run=_check)
    for command in (grade, check):
        add_sandbox(command)
        printed = command.add_mutually_exclusive_group()
        printed.add_argument("--json", action="store_true", help="print the record as one line of JSON")
        if command is grade:
            what = "print Gradescope's results.json, or Classroom 50's result.json"
            printed.add_argument("--format", choices=FORMATS, help=what)
        command.add_argument("--seed", type=int, help="draw the inputs from this seed instead of a secret one")
    _add_questions(commands)
    return parser


def _add_extend(commands: Any) -> None:
    extend = commands.add_parser("extend", help="give one student more time for one notebook")
    extend.add_argument("student", metavar="STUDENT")
    extend.add_argument("assignment", metavar="NOTEBOOK")
    until = extend.add_mutually_exclusive_group(required=True)
    until.add_argument(
        "--until", metavar="TIME", default="", help="as '2030-01-18 12:00', in the course's time zone, or '… UTC'"
    )
    until.add_argument("--days", type=_days, metavar="N", default=0.0, help="after the due date; 0 takes it back")
    extend.set_defaults(run=_extend)


def _days(text: str) -> float:
    try:
        days = float(text)
    except ValueError:
        days = -1.0
    if not 0 <= days <= MOST_DAYS:
        raise argparse.ArgumentTypeError(f"{text!r} given, a number of days from 0 to {MOST_DAYS} expected")
    return days


def _add_questions(commands: Any) -> None:
    """Add the commands that grade no submission."""
    exercises = commands.add_parser("exercises", help="what exists: kinds, points, checks")
    exercises.add_argument("--json", action="store_true")
    exercises.set_defaults(run=_exercises)
    quality = commands.add_parser("quality", help="how good the checks are: controls, mutants of the reference")
    quality.add_argument("exercise", nargs="*", metavar="EXERCISE")
    quality.add_argument("--sample", type=int, help="try only so many controls, and so many mutants")
    quality.add_argument("--seed", type=int, default=1, help="draw the inputs from this seed")
    quality.add_argument("--slots", type=int, default=len(os.sched_getaffinity(0)), help="judge so many at a time")
    quality.add_argument("--json", action="store_true")
    quality.set_defaults(run=_quality)
    new = commands.add_parser("new-exercise", help="write a trivial exercise into this checkout, to be edited")
    new.add_argument("exercise", metavar="NN_NAME", help="the lesson and a name, as 04_count_nodes")
    new.add_argument("--kind", choices=MISTAKES, default="value", help="the kind of answer that it begins with")
    new.set_defaults(run=_new_exercise)
    commands.add_parser("sandbox", help="which isolation this machine has, and what was probed").set_defaults(
        run=_sandbox
    )


def _grade(options: argparse.Namespace) -> int:
    submission = read_submission(options.submission)
    if submission.undecided:
        raise SubmissionError(f"{options.submission.name} is undecided. {submission.undecided}")
    record = grade_answers(
        options.submission.stem,
        options.submission.parent.parent.name or "student",
        submission.answers,
        submission_sha256=submission.sha256,
        sandbox=open_chosen(options),
        seed=options.seed,
        notes=submission.notes,
        show_speed=True,
    )
    if options.format:
        from autograder.classroom.nbgrader.course import open_course
        from autograder.classroom.nbgrader.dropped import dropped_exercises

        print(results_json(record, options.format, os.environ, dropped_exercises(open_course())))
        return DONE
    return _finish(record, options.json)


def _check(options: argparse.Namespace) -> int:
    exercise = find(options.exercise, hidden=options.hidden)
    content = read_bytes(options.file)
    try:
        answers = {exercise.id: content.decode()}
    except UnicodeDecodeError:
        raise SubmissionError(f"{options.file.name} is not text in UTF-8.") from None
    sandbox = open_chosen(options)
    graded = grade_exercise(
        exercise,
        answers,
        sandbox=sandbox,
        seed=new_seed() if options.seed is None else options.seed,
        show_speed=True,
    )
    record = SubmissionRecord(
        assignment=exercise.id,
        student=options.file.stem,
        submission_sha256=hashlib.sha256(content).hexdigest(),
        sandbox=SandboxRecord(sandbox.level, tuple(sandbox.notes)),
        exercises=(graded,),
    )
    return _finish(record, options.json)


def _finish(record: SubmissionRecord, as_json: bool) -> int:
    print(record.to_json() if as_json else _text(record))
    return OUR_FAILURE if any(e.status is ExerciseStatus.GRADER_ERROR for e in record.exercises) else DONE


def _text(record: SubmissionRecord) -> str:
    if not record.exercises:
        return f"{record.assignment} has no exercises."
    lines = [*map(exercise_text, record.exercises), *(f"note: {n}" for n in record.notes)]
    return "\n".join(
        [*lines, f"sandbox level {record.sandbox.level} · {record.points:g} of {record.max_points:g} points"]
    )


def _release(options: argparse.Namespace) -> int:
    from autograder.classroom.nbgrader.course import open_course
    from autograder.classroom.nbgrader.release import release

    course = open_course()
    names = release(course, options.assignment)
    print(*(f"released {course.release / name / name}.ipynb" for name in names), sep="\n")
    print("To hand them out through nbgrader's exchange: nbgrader release_assignment NAME, once for each.")
    return DONE


def _extend(options: argparse.Namespace) -> int:
    from autograder.classroom.nbgrader.course import open_course
    from autograder.classroom.nbgrader.extensions import extend

    course = open_course()
    print(extend(course, options.student, options.assignment, until=options.until, days=options.days))
    return DONE


def _roster(options: argparse.Namespace) -> int:
    from autograder.classroom.nbgrader.course import open_course
    from autograder.classroom.roster import import_roster

    count = import_roster(open_course(), options.file)
    print(f"{count} students of {options.file} are in the gradebook.")
    return DONE


def _exercises(options: argparse.Namespace) -> int:
    found = [find(e, hidden=True) for e in all_exercises()]
    if options.json:
        rows = [
            {
                "id": e.id,
                "title": e.title,
                "kind": e.kind,
                "entry_point": e.entry_point,
                "points": e.points,
                "by_hand": e.by_hand,
                "checks": [
                    {"name": c.name, "category": c.category, "hidden": c.hidden, "points": c.points} for c in e.checks
                ],
            }
            for e in found
        ]
        print(json.dumps(rows, indent=2))
        return DONE
    for e in found:
        by_hand = f" and {e.by_hand:g} by a person" if e.by_hand else ""
        print(f"{e.id}  {e.kind}  {e.points:g} points{by_hand}  def {e.entry_point}(...)")
        for c in e.checks:
            print(f"    {c.points:>5g}  {'hidden ' if c.hidden else 'visible'}  {c.name}")
    return DONE


def _quality(options: argparse.Namespace) -> int:
    sandbox = open_sandbox()
    chosen, surveyed = options.exercise or all_exercises(), []
    try:
        with stage("Quality", len(chosen), Console(stderr=True)) as advance:
            for name in chosen:
                surveyed.append(
                    survey(name, sandbox=sandbox, seed=options.seed, sample=options.sample, slots=options.slots)
                )
                advance(name)
    except LookupError as error:  # unknown exercise, or no hidden part is installed
        raise UsageError(str(error)) from error
    print(quality_json(surveyed) if options.json else quality_text(surveyed))
    return DIFFERENT if failing(surveyed) else DONE


def _new_exercise(options: argparse.Namespace) -> int:
    written = write_exercise(options.exercise, options.kind)
    print("Written:", *(f"    {path}" for path in written), sep="\n")
    print("Each TODO in them says what to edit. The notebook's first cell and its summary may count the exercises.")
    return DONE


def _sandbox(_: argparse.Namespace) -> int:
    print(describe())
    return DONE
