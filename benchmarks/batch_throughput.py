"""Measure the grading of a class: graph submissions in a minute on all cores, and the cost of writing a record.

python -m benchmarks.batch_throughput [--submissions 300] [--quick]
"""

import argparse
import os
import statistics
import sys
import tempfile
import time
from collections import Counter
from dataclasses import replace
from pathlib import Path

from autograder.classroom.batch import Journal, LocalEngine, grade_class, secret_seed
from autograder.host.records import SubmissionRecord
from autograder.host.sandbox import open_sandbox
from benchmarks.made_class import make_class

EXERCISE = "05_bias_silu_pass"
APPENDS = 200


def grading(work: Path, submissions: int) -> tuple[list[SubmissionRecord], float, int]:
    """Grade a class of controls; returns records, seconds and the sandbox's level."""
    hand_ins = make_class(work / "submitted", EXERCISE, submissions)
    sandbox = open_sandbox()
    started = time.monotonic()
    with Journal(work / "journal.jsonl") as journal:
        run = grade_class(
            hand_ins, journal, engine=LocalEngine(sandbox), seed=secret_seed(work / "seed"), on_record=_dot
        )
    print()
    return list(run.records), time.monotonic() - started, sandbox.level


def _dot(record: SubmissionRecord) -> None:
    print(".", end="", flush=True)


def append_ms(work: Path, record: SubmissionRecord) -> tuple[float, int]:
    """Return the median time of one durable append in ms, and the bytes of its line."""
    times = []
    with Journal(work / "appends.jsonl") as journal:
        for number in range(APPENDS):
            one = replace(record, student=f"student_{number}")
            started = time.perf_counter()
            journal.append(one)
            times.append((time.perf_counter() - started) * 1e3)
    return statistics.median(times), (work / "appends.jsonl").stat().st_size // APPENDS


def main() -> int:
    """Print the table; see the module."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--submissions", type=int, default=300)
    parser.add_argument("--quick", action="store_true", help="14 submissions")
    options = parser.parse_args()
    load = os.getloadavg()[0]
    with tempfile.TemporaryDirectory() as folder:
        work = Path(folder)
        records, seconds, level = grading(work, 14 if options.quick else options.submissions)
        milliseconds, line_bytes = append_ms(work, records[0])
    statuses = Counter(str(exercise.status) for record in records for exercise in record.exercises)
    print(f"submissions of {EXERCISE}  {len(records)}")
    print(f"cores, load before it began       {len(os.sched_getaffinity(0))}, {load:.1f}")
    print(f"sandbox level                     {level}")
    print(f"seconds                           {seconds:.0f}")
    print(f"submissions a minute              {len(records) / seconds * 60:.0f}")
    print(f"one durable append to the journal {milliseconds:.2f} ms for {line_bytes} bytes")
    print(f"how they ended                    {', '.join(f'{name} {n}' for name, n in statuses.most_common())}")
    return 1 if statuses["grader_error"] else 0


if __name__ == "__main__":
    sys.exit(main())
