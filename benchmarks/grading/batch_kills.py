"""Kill the grading of a class repeatedly at random times, and count records that are lost or written twice.

    python -m benchmarks.grading.batch_kills [--submissions 200] [--kills 20] [--quick]

The batch runs as a process of its own, as on an instructor's machine, and is ended by SIGKILL. Each start goes on from
the journal. At the end every submission must stand in it once, with the marks that an undisturbed grading gives, and
the table is printed. Exit status 1 if anything was lost, doubled or graded again though it was written down.
"""

import argparse
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

from autograder.classroom.batch import Journal, LocalEngine, grade_class, records_in, secret_seed
from autograder.classroom.hand_in import handed_in
from autograder.host.sandbox import open_sandbox
from benchmarks.grading.batch_throughput import make_class

EXERCISE = "04_read_a_graph"
MOST_RECORDS_A_START = 15  # a kill comes after 0 to this many new records, and up to JITTER_S later
JITTER_S = 0.3


@dataclass
class Outcome:
    """Hold the effects of the kills."""

    submissions: int
    kills: int = 0
    seconds: float = 0.0
    written: int = 0  # records in the journal at the end
    torn_bytes: int = 0
    faults: list[str] = field(default_factory=list)


def grade(folder: Path, journal: Path, seed_file: Path) -> None:
    """Grade the submissions in `folder`, and print a line when a record is on disk; this runs in the killed process."""
    hand_ins = handed_in(folder, [path.name for path in next(folder.iterdir()).iterdir()])
    with Journal(journal) as opened:
        print("start", flush=True)
        engine = LocalEngine(open_sandbox())
        grade_class(
            hand_ins,
            opened,
            engine=engine,
            seed=secret_seed(seed_file),
            on_record=lambda record: print(record.student, flush=True),
        )


def run(work: Path, submissions: int, kills: int, generator: random.Random) -> Outcome:
    """Grade a class of `submissions`, with `kills` kills during the run."""
    outcome, started = Outcome(submissions), time.monotonic()
    hand_ins = make_class(work / "submitted", EXERCISE, submissions)
    journal, seed_file = work / "journal.jsonl", work / "secret_seed"
    told: Counter[str] = Counter()
    for attempt in range(kills + 1):
        last = attempt == kills
        most = max(submissions // (kills + 1), 1)
        count = generator.randint(0, min(MOST_RECORDS_A_START, most))
        told.update(_start(work, None if last else count, generator))
        outcome.kills += not last
    outcome.seconds = time.monotonic() - started
    torn = journal.with_name(journal.name + ".torn")
    outcome.torn_bytes = torn.stat().st_size if torn.exists() else 0
    outcome.written = sum(1 for _ in records_in(journal))
    _judge(outcome, [h.student for h in hand_ins], told, journal)
    _compare_with_undisturbed(outcome, work, journal, seed_file)
    return outcome


def _start(work: Path, count: int | None, generator: random.Random) -> list[str]:
    """Run the batch once; kill it after `count` new records, or let it finish if `count` is None."""
    command = [sys.executable, "-m", "benchmarks.grading.batch_kills", "--grade", str(work)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, start_new_session=True) as process:
        assert process.stdout is not None
        told: list[str] = []
        for line in process.stdout:
            if line.strip() != "start":
                told.append(line.strip())
            if count is not None and len(told) >= count:
                time.sleep(generator.uniform(0, JITTER_S))
                os.kill(process.pid, signal.SIGKILL)
                break
        told += [line.strip() for line in process.stdout if line.strip() != "start"]
    if count is None and process.returncode != 0:
        raise SystemExit(f"the last start of the batch failed with status {process.returncode}")
    return told


def _judge(outcome: Outcome, students: list[str], told: Counter[str], journal: Path) -> None:
    written = Counter(record.student for record in records_in(journal))
    outcome.faults += [f"{student} is lost" for student in students if not written[student]]
    outcome.faults += [f"{student} stands there {n} times" for student, n in written.items() if n > 1]
    outcome.faults += [f"{student} was graded again though written down" for student, n in told.items() if n > 1]


def _compare_with_undisturbed(outcome: Outcome, work: Path, journal: Path, seed_file: Path) -> None:
    """Grade some submissions again into a fresh journal and compare the marks."""
    marks = {record.student: record.points for record in records_in(journal)}
    hand_ins = handed_in(work / "submitted", [path.name for path in next((work / "submitted").iterdir()).iterdir()])
    with Journal(work / "again.jsonl") as fresh:
        again = grade_class(hand_ins[:24], fresh, engine=LocalEngine(open_sandbox()), seed=secret_seed(seed_file))
    outcome.faults += [
        f"{record.student} has {marks.get(record.student)} points, undisturbed {record.points}"
        for record in again.records
        if marks.get(record.student) != record.points
    ]


def main() -> int:
    """Print the table; see the module."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--submissions", type=int, default=200)
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--quick", action="store_true", help="12 submissions, 3 kills")
    parser.add_argument("--seed", type=int, default=0, help="of the moments at which it is killed")
    parser.add_argument("--grade", type=Path, metavar="WORK", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.grade:
        work = options.grade
        grade(work / "submitted", work / "journal.jsonl", work / "secret_seed")
        return 0
    submissions, kills = (12, 3) if options.quick else (options.submissions, options.kills)
    with tempfile.TemporaryDirectory() as work:
        outcome = run(Path(work), submissions, kills, random.Random(options.seed))
    print(f"submissions                {outcome.submissions}")
    print(f"kills by SIGKILL           {outcome.kills}")
    print(f"in the journal             {outcome.written}")
    print(f"bytes of unfinished lines  {outcome.torn_bytes}")
    print(f"lost, doubled or different {len(outcome.faults)}")
    print(f"seconds                    {outcome.seconds:.0f}")
    for fault in outcome.faults:
        print(f"FAULT {fault}")
    return 1 if outcome.faults else 0


if __name__ == "__main__":
    sys.exit(main())
