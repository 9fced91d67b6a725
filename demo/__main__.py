"""An instructor's whole grading cycle on a small class, or an afternoon with a class of sixty that is made up.

    python -m demo                                the small class kept in tests/submissions, through all notebooks
    python -m demo --device cpu --measured        the same, with points for the speed that is measured on this CPU
    python -m demo afternoon [--students 60]      a made-up class, through one notebook and every step of the guide
    python -m demo capstone                       21 made-up hand-ins of notebook 17, and points of a person

Exit status: 0 every mark and every page of feedback is as stated · 1 something differs · 4 something of ours failed.
"""

import argparse
import logging
import os
import shutil
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from autograder.classroom.batch import LocalEngine, fingerprint, records_in, secret_seed
from autograder.classroom.nbgrader.course import Course, open_course
from autograder.classroom.nbgrader.grade import Graded, grade_course
from autograder.classroom.nbgrader.release import release
from autograder.classroom.sandbox_options import add_sandbox, open_chosen
from autograder.classroom.status import DIFFERENT, DONE, print_anything, run_command
from autograder.exercises import find, of_assignment
from autograder.host.grading import grade_exercise, new_seed
from autograder.host.records import SubmissionRecord
from autograder.host.report.wording import SPEED_WORDS, speed_headline
from autograder.host.sandbox import Sandbox
from demo.afternoon import run_afternoon
from demo.capstone import run_capstone
from demo.class_file import Member, read_class
from demo.hand_in import hand_in, hand_over
from demo.outcome import differences, feedback_back

ROOT = Path(__file__).parents[1]
SUBMISSIONS = ROOT / "tests" / "submissions"
UNFINISHED = "unfinished"  # a file in the work folder while a demonstration runs
HANDED_IN = "handed_in"
TIMED = "timed"  # folder of the hand-ins about speed
HOMES = "homes"  # folder of the students' home folders


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the demonstration, or the afternoon, in this checkout."""
    print_anything()
    options = _parser().parse_args(arguments)
    return run_command("demo", lambda: int(options.run(options)))


def _parser() -> argparse.ArgumentParser:
    style = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(prog="demo", description=__doc__, formatter_class=style)
    parser.add_argument("--work", type=Path, default=ROOT / "work" / "demo", help="folder for everything that is made")
    parser.add_argument("--class", dest="members", type=Path, default=SUBMISSIONS, metavar="FOLDER")
    parser.add_argument("--report", type=Path, default=ROOT / "work" / "report", help="folder of the class report")
    add_sandbox(parser)
    parser.set_defaults(run=_demo)
    made_up = "A made-up class of any size, through one notebook and every step of the guide for instructors."
    commands = parser.add_subparsers(title="another class", metavar="afternoon|capstone")
    afternoon = commands.add_parser("afternoon", help="a made-up class of any size", description=made_up)
    afternoon.add_argument("--students", type=int, default=60)
    afternoon.add_argument("--assignment", default="00_start_here")
    afternoon.add_argument("--work", type=Path, default=ROOT / "work" / "afternoon", help="folder for all that is made")
    afternoon.add_argument("--answers", type=Path, default=SUBMISSIONS, metavar="FOLDER")
    afternoon.set_defaults(run=_afternoon)
    about = "21 made-up hand-ins of the capstone, with the points that a person gives for the work logs."
    capstone = commands.add_parser("capstone", help="21 hand-ins of notebook 17", description=about)
    capstone.add_argument("--work", type=Path, default=ROOT / "work" / "capstone", help="folder for all that is made")
    capstone.set_defaults(run=_capstone)
    return parser


def _demo(options: argparse.Namespace) -> int:
    result = run_demo(options.work.resolve(), options.members, options.report.resolve(), sandbox=open_chosen(options))
    print(f"\n{result.graded.text}")
    if result.resumed:
        print(f"{result.graded.from_journal} records were taken from the journal of the interrupted run.")
    print(f"report    {result.graded.page}")
    print(f"marks     {result.graded.csv}")
    told = _verdict(result.differences)
    print(f"{len(result.graded.records)} submissions in {result.seconds:.0f} s: {told}")
    return DIFFERENT if result.differences else DONE


def _afternoon(options: argparse.Namespace) -> int:
    logging.getLogger("traitlets").setLevel(logging.ERROR)  # nbgrader logs each step of each student
    work, size = options.work.resolve(), options.students
    done = run_afternoon(work, options.assignment, size, sandbox=open_chosen(options), answers=options.answers)
    told = _verdict(done.differences)
    print(f"report    {done.graded.page}\nmarks     {done.graded.csv}")
    print(f"{len(done.graded.records)} of {size} students handed in, {done.pages} fetched feedback")
    print(f"{done.seconds:.0f} s: {told}")
    return DIFFERENT if done.differences else DONE


def _capstone(options: argparse.Namespace) -> int:
    done = run_capstone(options.work.resolve(), sandbox=open_chosen(options))
    print(f"\n{done.graded.text}")
    told = _verdict(done.differences)
    print(f"report    {done.graded.page}\nmarks     {done.graded.csv}")
    print(f"{len(done.graded.records)} submissions in {done.seconds:.0f} s: {told}")
    return DIFFERENT if done.differences else DONE


def _verdict(differences: Sequence[str]) -> str:
    """Print each difference, and return the text about them for the last line."""
    for sentence in differences:
        print(f"DIFFERENT {sentence}")
    return f"{len(differences)} differences" if differences else "every mark is as stated"


@dataclass(frozen=True)
class DemoResult:
    """The result of a demonstration."""

    graded: Graded
    differences: tuple[str, ...]
    resumed: bool
    seconds: float


def run_demo(work: Path, class_folder: Path, report: Path, *, sandbox: Sandbox, slots: int | None = None) -> DemoResult:
    """Run the whole cycle below `work` on the class in `class_folder`, and compare every mark with the expected one.

    After a run that was killed, the next run continues with its secret seed and journal. After a run that ended, the
    next run starts from the beginning.
    """
    started = time.monotonic()
    members = read_class(class_folder)
    resumed = (work / UNFINISHED).exists()
    if not resumed and work.exists():
        shutil.rmtree(work)
    work.mkdir(parents=True, exist_ok=True)
    (work / UNFINISHED).touch()
    os.environ |= {"COURSE_WORK": str(work), "COURSE_EXCHANGE": str(work / "exchange")}  # for nbgrader_config.py
    course = open_course()
    _say(f"Class of {len(members)}, sandbox level {sandbox.level}, work in {work}")
    _say(f"Secret seed drawn; its fingerprint is {fingerprint(secret_seed(course.seed_file))}")
    if resumed:
        count = sum(1 for _ in records_in(course.journal))
        _say(f"A demonstration was interrupted here; going on with {count} records from its journal")
    chosen = [name for name in course.assignments if _answered(name, members)]
    _prepare(course, members, work, chosen)
    graded = grade_course(
        course, engine=LocalEngine(sandbox, slots), report=report, title="Class report: demonstration"
    )
    for name in chosen:
        course.do("release_feedback", name)
    wrong, pages = feedback_back(course, members, work / HOMES, chosen)
    _say(f"Give back: {pages} pages of feedback fetched")
    _show_speeds(members, graded.records, sandbox)
    found = (*graded.failures, *differences(members, graded.records, graded.csv), *wrong)
    (work / UNFINISHED).unlink()
    return DemoResult(graded, found, resumed, time.monotonic() - started)


def _show_speeds(members: Sequence[Member], records: Sequence[SubmissionRecord], sandbox: Sandbox) -> None:
    """Print the measured ratio of each hand-in about speed; measure it here where counted cost decided."""
    measured = {(r.student, e.id): e.speed for r in records for e in r.exercises if e.speed}
    for member in members:
        for exercise, parts in member.answers.items() if member.kind == TIMED else ():
            speed = measured.get((member.name, exercise))
            if speed is None:
                answers = {exercise: "\n\n".join(parts)}
                asked = find(exercise, hidden=False)
                speed = grade_exercise(asked, answers, sandbox=sandbox, seed=new_seed(), show_speed=True).speed
            if speed is not None:
                _say(f"Speed of {member.name}: {speed_headline(speed)}, {SPEED_WORDS[speed.verdict]}")


def _answered(assignment: str, members: Sequence[Member]) -> list[Member]:
    return [member for member in members if member.answers.keys() & set(of_assignment(assignment))]


def _prepare(course: Course, members: Sequence[Member], work: Path, chosen: Sequence[str]) -> None:
    """Release the notebooks and collect the hand-ins, only once, so that they do not change in a continued run."""
    if (work / HANDED_IN).exists():
        return
    for folder in (course.submitted, work / "exchange", work / HOMES):
        shutil.rmtree(folder, ignore_errors=True)
    _say("Release: " + ", ".join(release(course, chosen)))
    for name in chosen:
        course.do("release_assignment", name)
    _say("Hand in: " + ", ".join(f"{member.name} ({member.kind})" for member in members))
    for member in members:
        hand_in(member, course.release, work / HOMES)
    for name in chosen:
        for member in _answered(name, members):
            hand_over(course, work / HOMES / member.name, name)
        course.do("collect", name)
    (work / HANDED_IN).touch()


def _say(sentence: str) -> None:
    print(f"==> {sentence}", flush=True)


if __name__ == "__main__":
    sys.exit(main())
