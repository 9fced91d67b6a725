"""`autograder batch`: grade a class into the journal, enter the marks in nbgrader's gradebook, give feedback, report.

It can be killed and run again at any time. A hand-in that breaks a step is set aside and named, in the report and at
the end of what is printed. It gets no mark, and the next run tries it again. The others get marks and feedback.

Exit status as for every command: 0 also says that what was set aside is named. 4 says that nobody has a mark, or that
the grader or the machine failed for all, as a full disk or a broken journal does.
"""

import argparse
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from autograder.classroom.batch import Engine, LocalEngine, secret_seed
from autograder.classroom.hand_in import folders_handed_in
from autograder.classroom.sandbox_options import add_sandbox, chosen_settings, open_chosen
from autograder.classroom.status import DONE, OUR_FAILURE, CommandError, UsageError
from autograder.exercises.registry import hidden_folder

if TYPE_CHECKING:
    from distributed import Client

    from autograder.classroom.nbgrader.course import Course
    from autograder.classroom.nbgrader.grade import Graded


def add_batch(commands: Any) -> None:
    """Add the command to the command line's `commands`."""
    style = argparse.RawDescriptionHelpFormatter
    batch = commands.add_parser(
        "batch", help="grade a class, with journal and gradebook", description=__doc__, formatter_class=style
    )
    batch.add_argument(
        "submitted",
        type=Path,
        nargs="?",
        metavar="SUBMITTED_DIR",
        help="holds STUDENT/ASSIGNMENT/ASSIGNMENT.ipynb; by default where nbgrader collects",
    )
    batch.add_argument(
        "--assignment", action="append", default=[], metavar="NAME", help="only this one; may be repeated"
    )
    batch.add_argument(
        "--engine",
        choices=("local", "dask", "slurm"),
        default="local",
        help="this process, Dask workers, or Dask workers that Slurm starts",
    )
    batch.add_argument(
        "--slots",
        type=_at_least_one,
        metavar="N",
        help="hand-ins at a time; by default one a core (local: 1 where speed is measured; dask: one a GPU; slurm: 1); "
        "ignored with --scheduler",
    )
    batch.add_argument(
        "--scheduler", metavar="ADDRESS", help="of a running Dask cluster; without it one is started here"
    )
    add_sandbox(batch)
    batch.set_defaults(run=_run)


def _at_least_one(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} given, a whole number from 1 up expected")
    return int(text)


def _run(options: argparse.Namespace) -> int:
    from autograder.classroom.nbgrader.course import open_course

    course = open_course(submitted=options.submitted)
    _check_usage(options, course)
    with going_on(), _engine(options, course) as engine:
        return grade_and_tell(course, options.assignment, engine)


@contextmanager
def going_on() -> Iterator[None]:
    """Say of an interruption in the block that nothing is lost."""
    try:
        yield
    except KeyboardInterrupt:
        print(file=sys.stderr)  # end the current line of the terminal
        raise CommandError("stopped; what was graded is kept, the same command goes on.") from None


def grade_and_tell(course: "Course", assignments: Sequence[str], engine: Engine) -> int:
    """Grade a class, print the report and what to do next, and return the exit status."""
    from autograder.classroom.nbgrader.grade import grade_course
    from autograder.classroom.platforms.moodle_marks import write_worksheets

    graded = grade_course(course, assignments, engine=engine, report=course.journal.parent / "report")
    worksheets = write_worksheets(course, sorted({record.assignment for record in graded.records}))
    print(f"\n{graded.text}\n{_where(graded, worksheets)}")
    if graded.failures:
        print(f"autograder: {len(graded.failures)} set aside, each for a person:", file=sys.stderr)
    for failure in graded.failures:
        print(f"  {failure}", file=sys.stderr)
    return OUR_FAILURE if graded.failures and not graded.marked else DONE


def _where(graded: "Graded", worksheets: Iterable[str]) -> str:
    """Return the paths of the results, and the commands to run next."""
    canvas = graded.csv.with_name("canvas.csv")
    names = sorted({record.assignment for record in graded.records})
    return "\n".join(
        [
            f"report     {graded.page}",
            f"marks      {graded.csv}{f' and {canvas.name}' if canvas.is_file() else ''}",
            *worksheets,
            *(f"give back  nbgrader release_feedback {name}" for name in names),
        ]
    )


def _check_usage(options: argparse.Namespace, course: "Course") -> None:
    """Raise `UsageError` if there is nothing to grade or the options contradict each other."""
    if hidden_folder() is None:
        raise UsageError(
            "this is a student's installation, without hidden checks; grade from an instructor's checkout."
        )
    chosen = course.chosen(options.assignment)
    if options.scheduler and options.engine != "dask":
        raise UsageError("--scheduler was given without --engine dask; add that, or leave it out.")
    if not folders_handed_in(course.submitted, chosen):
        raise UsageError(f"nothing was handed in; notebooks belong into {course.submitted}/STUDENT/ASSIGNMENT.")


@contextmanager
def _engine(options: argparse.Namespace, course: "Course") -> Iterator[Engine]:
    if options.engine == "local":
        yield LocalEngine(open_chosen(options), options.slots)
        return
    from autograder.classroom.batch.dask_engine import DaskEngine

    secret_seed(course.seed_file)  # drawn here, once, and only read by the workers
    with _cluster(options) as client:
        chosen = chosen_settings(options)
        engine = DaskEngine(
            client, course.seed_file, options.sandbox, options.i_trust_this_code, chosen.device, chosen.measured
        )
        engine.require_ready(course.submitted)
        yield engine


def _cluster(options: argparse.Namespace) -> AbstractContextManager["Client"]:
    from autograder.classroom.batch.dask_engine import connected, local_cluster, slurm_cluster

    if options.engine == "slurm":
        return slurm_cluster(options.slots or 1)
    return connected(options.scheduler) if options.scheduler else local_cluster(options.slots)
