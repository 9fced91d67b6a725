"""``python -m demo``: see `demo.run`.

Exit status: 0 every mark is as stated · 1 a mark differs · 4 something of ours failed.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from autograder.classroom.batch import JournalError
from autograder.classroom.nbgrader.course import NbgraderError
from autograder.classroom.nbgrader.release import ReleaseError
from autograder.host.sandbox import SandboxError, open_sandbox
from demo.class_file import ClassFileError
from demo.run import run_demo

AS_STATED, DIFFERENT, OUR_FAILURE = 0, 1, 4
ROOT = Path(__file__).parents[1]


def main() -> int:
    """Run the demonstration in this checkout."""
    parser = argparse.ArgumentParser(prog="demo", description="An instructor's whole grading cycle on a small class.")
    parser.add_argument("--work", type=Path, default=ROOT / "work" / "demo", help="folder for everything that is made")
    parser.add_argument("--class", dest="members", type=Path, default=ROOT / "tests" / "submissions", metavar="FOLDER")
    parser.add_argument("--report", type=Path, default=ROOT / "work" / "report", help="folder of the class report")
    options = parser.parse_args()
    try:
        result = run_demo(options.work.resolve(), options.members, options.report.resolve(), sandbox=open_sandbox())
    except (ClassFileError, ReleaseError, NbgraderError, SandboxError, JournalError, OSError) as error:
        print(f"demo: {error}", file=sys.stderr)
        return OUR_FAILURE
    print(f"\n{result.graded.text}")
    if result.resumed:
        print(f"{result.graded.from_journal} records were taken from the journal of the interrupted run.")
    print(f"report    {result.graded.page}")
    print(f"marks     {result.graded.csv}")
    for sentence in result.differences:
        print(f"DIFFERENT {sentence}")
    verdict = "every mark is as stated" if not result.differences else f"{len(result.differences)} differences"
    print(f"{len(result.graded.records)} submissions in {result.seconds:.0f} s: {verdict}")
    return DIFFERENT if result.differences else AS_STATED


if __name__ == "__main__":
    sys.exit(main())
