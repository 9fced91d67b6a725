"""Measure the grading of a class: graph submissions in a minute on all cores, and the cost of writing a record.

python -m benchmarks.grading.batch_throughput [--submissions 300] [--quick]
"""

import argparse
import json
import os
import statistics
import sys
import tempfile
import time
from collections import Counter
from dataclasses import replace
from pathlib import Path

from autograder.classroom.batch import Journal, LocalEngine, grade_class, secret_seed
from autograder.classroom.hand_in import HandedIn, read_hand_in
from autograder.exercises.quality.controls import controls
from autograder.host.records import SubmissionRecord
from autograder.host.sandbox import open_sandbox

ROOT = Path(__file__).parents[2]


def make_class(folder: Path, exercise: str, count: int) -> list[HandedIn]:
    """Write `count` submissions of `exercise` below `folder`; the answers are its controls, in turn."""
    (notebook,) = (ROOT / "notebooks").glob(f"{exercise.split('_')[0]}_*/*.ipynb")
    assignment, answers = notebook.stem, [control.answer for control in controls(exercise)]
    made = []
    for number in range(count):
        path = folder / f"student_{number:04d}" / assignment / f"{assignment}.ipynb"
        path.parent.mkdir(parents=True)
        # a different text for each, since no two students hand in the same file
        path.write_text(json.dumps(_notebook(exercise, f"{answers[number % len(answers)]}\n# {number}\n")))
        made.append(read_hand_in(assignment, path.parts[-3], path).without_notebook())
    return made


def _notebook(exercise: str, answer: str) -> dict[str, object]:
    marks = {"schema_version": 3, "grade_id": exercise, "grade": False, "solution": True, "locked": False}
    cell: dict[str, object] = {"cell_type": "code", "id": "answer", "metadata": {"nbgrader": marks}, "source": answer}
    cell |= {"outputs": [], "execution_count": None}
    return {"cells": [cell], "metadata": {}, "nbformat": 4, "nbformat_minor": 5}


EXERCISE = "05_bias_silu_pass"
APPENDS = 200


def grading(work: Path, submissions: int) -> tuple[list[SubmissionRecord], float, int]:
    """Grade a class of controls; return records, seconds and the sandbox's level."""
    hand_ins = make_class(work / "submitted", EXERCISE, submissions)
    sandbox = open_sandbox()
    started = time.monotonic()
    with Journal(work / "journal.jsonl") as journal:
        run = grade_class(
            hand_ins,
            journal,
            engine=LocalEngine(sandbox),
            seed=secret_seed(work / "seed"),
            on_record=lambda record: print(".", end="", flush=True),
        )
    print()
    return list(run.records), time.monotonic() - started, sandbox.level


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
