"""An instructor's whole grading cycle on a small class, or an afternoon with a class of sixty that is made up.

    python -m demo                                the small class kept in tests/submissions, through all notebooks
    python -m demo afternoon [--students 60]      a made-up class, through one notebook and every step of the guide

Exit status: 0 every mark and every page of feedback is as stated · 1 something differs · 4 something of ours failed.
"""

import argparse
import logging
import sys
from collections.abc import Sequence
from pathlib import Path

from autograder.classroom.status import DIFFERENT, DONE, run_command
from autograder.host.sandbox import open_sandbox
from demo.afternoon import run_afternoon
from demo.run import run_demo

ROOT = Path(__file__).parents[1]
SUBMISSIONS = ROOT / "tests" / "submissions"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the demonstration, or the afternoon, in this checkout."""
    options = _parser().parse_args(arguments)
    return run_command("demo", lambda: int(options.run(options)))


def _parser() -> argparse.ArgumentParser:
    style = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(prog="demo", description=__doc__, formatter_class=style)
    parser.add_argument("--work", type=Path, default=ROOT / "work" / "demo", help="folder for everything that is made")
    parser.add_argument("--class", dest="members", type=Path, default=SUBMISSIONS, metavar="FOLDER")
    parser.add_argument("--report", type=Path, default=ROOT / "work" / "report", help="folder of the class report")
    parser.set_defaults(run=_demo)
    made_up = "A made-up class of any size, through one notebook and every step of the guide for instructors."
    commands = parser.add_subparsers(title="another class", metavar="afternoon")
    afternoon = commands.add_parser("afternoon", help="a made-up class of any size", description=made_up)
    afternoon.add_argument("--students", type=int, default=60)
    afternoon.add_argument("--assignment", default="00_start_here")
    afternoon.add_argument("--work", type=Path, default=ROOT / "work" / "afternoon", help="folder for all that is made")
    afternoon.add_argument("--answers", type=Path, default=SUBMISSIONS, metavar="FOLDER")
    afternoon.set_defaults(run=_afternoon)
    return parser


def _demo(options: argparse.Namespace) -> int:
    result = run_demo(options.work.resolve(), options.members, options.report.resolve(), sandbox=open_sandbox())
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
    done = run_afternoon(work, options.assignment, size, sandbox=open_sandbox(), answers=options.answers)
    told = _verdict(done.differences)
    print(f"report    {done.graded.page}\nmarks     {done.graded.csv}")
    print(f"{len(done.graded.records)} of {size} students handed in, {done.pages} fetched feedback")
    print(f"{done.seconds:.0f} s: {told}")
    return DIFFERENT if done.differences else DONE


def _verdict(differences: Sequence[str]) -> str:
    """Print each difference, and return what the last line says of them."""
    for sentence in differences:
        print(f"DIFFERENT {sentence}")
    return f"{len(differences)} differences" if differences else "every mark is as stated"


if __name__ == "__main__":
    sys.exit(main())
