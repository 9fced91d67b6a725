"""Measure how long pages take that an instructor of sixty students opens: Formgrader, feedback, the class report.

python -m benchmarks.grading.page_times [--students 60] [--quick] [--work FOLDER]

A made-up class is graded first (`python -m demo afternoon`), unless FOLDER holds one. Each page is opened in
Chromium, once unmeasured and three times measured, until it is loaded and holds its rows. Exit status: 0 each median is
below 2 s · 1 one is not · 2 there is no Chromium.
"""

import argparse
import asyncio
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

from scripts.browser import NoBrowserError, browser, find, jupyter_server

ROOT = Path(__file__).parents[2]
NAME = "00_start_here"
TARGET_S = 2.0
REPEATS = 3
ROWS = "document.querySelectorAll('tbody tr').length >= {} && !document.body.innerText.includes('Loading, please wait')"


def addresses(server: str, work: Path, rows: int) -> dict[str, tuple[str, str]]:
    """Return the name of each page with its address and an expression that tells that it is loaded."""
    grader, most = f"{server}/formgrader", work / "feedback" / "outputs_01" / NAME / f"{NAME}.html"
    return {
        "Formgrader: assignments": (grader, ROWS.format(1)),
        "Formgrader: submissions": (f"{grader}/manage_submissions/{NAME}", ROWS.format(rows)),
        "Formgrader: manual grading": (f"{grader}/gradebook/{NAME}/{NAME}", ROWS.format(rows)),
        "Formgrader: students": (f"{grader}/manage_students", ROWS.format(rows)),
        "Formgrader: one submission": ("", "document.querySelector('.nbgrader_cell') !== null"),
        "feedback of 60 MB of outputs": (most.as_uri(), "document.querySelector('.nbgrader_cell, .cell') !== null"),
        "class report": ((work / "report" / "index.html").as_uri(), ROWS.format(rows)),
    }


async def times_s(server: str, work: Path, rows: int) -> dict[str, float]:
    """Return the median seconds of each page."""
    found: dict[str, float] = {}
    with tempfile.TemporaryDirectory() as profile:
        async with browser(Path(profile)) as tab:
            pages = addresses(server, work, rows)
            for name, (address, is_there) in pages.items():
                if not address:
                    await tab.open(*pages["Formgrader: manual grading"])
                    address = await tab.evaluate("document.querySelector('tbody tr td a[href*=submissions]').href")
                taken = [await tab.open(address, is_there) for _ in range(REPEATS + 1)]
                found[name] = statistics.median(taken[1:])
    return found


def main() -> int:
    """Print the table; see the module."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--students", type=int, default=60)
    parser.add_argument("--quick", action="store_true", help="12 students")
    parser.add_argument("--work", type=Path, metavar="FOLDER", help="of a class that was graded already")
    options = parser.parse_args()
    size, load = (12 if options.quick else options.students), os.getloadavg()[0]
    try:
        find()
    except NoBrowserError as error:  # reported before a class is graded, not after
        print(f"page_times: {error}", file=sys.stderr)
        return 2
    with tempfile.TemporaryDirectory() as folder:
        work = (options.work or Path(folder) / "work").resolve()
        if not options.work:
            command = ["-m", "demo", "afternoon", "--students", str(size), "--work", str(work)]
            if (status := subprocess.run([sys.executable, *command], cwd=ROOT, stdout=sys.stderr).returncode) > 1:
                return status
        rows = sum(1 for _ in work.glob(f"autograded/*/{NAME}"))
        with jupyter_server("server", ROOT, {**os.environ, "COURSE_WORK": str(work)}, work / "server.log") as server:
            found = asyncio.run(times_s(server, work, rows))
    print(f"students who handed in {rows}, load before it began {load:.1f}")
    for name, seconds in found.items():
        print(f"{name:30} {seconds:5.2f} s{'' if seconds < TARGET_S else '  more than 2 s'}")
    return 1 if max(found.values()) >= TARGET_S else 0


if __name__ == "__main__":
    sys.exit(main())
