"""Measure how often the judge's verdict on a known speedup is right, with real workers and the judge's own clock.

    python -m benchmarks.grading.speed_verdicts [--quick] [--runs N] [--results FOLDER]

A graph that calls an operator n times is judged against one that calls it m times and gives the same output, so the
true ratio is m / n. First, the baseline is compared with itself: the ratio must be 1.00 within 2 %. Then a known
ratio of 1.5 must PASS for a threshold of 1.2 and FAIL for 2.0, both idle and while another process keeps all other
cores busy. `--quick` makes three runs of each, for CI, and judges only that no verdict is wrong.

Exit status: 0 if all of it holds, 1 otherwise.
"""

import argparse
import os
import statistics
import sys
import time
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import asdict, dataclass, field
from pathlib import Path

import torch

from autograder.host.artifacts import Artifact
from autograder.host.clock.contest import Contest, contest
from autograder.host.clock.trial import Plan, Trial
from autograder.host.clock.verdict import assess, enough
from autograder.host.draw import Draw
from autograder.host.sandbox import Sandbox, open_sandbox
from autograder.host.speed import Speed, Thresholds
from autograder.host.traced import Program, TensorSpec, traced
from benchmarks.timing_decisions import idle, loaded, upper_bound, write
from course_lib.show import Table
from course_lib.timing import Verdict, environment

INPUT = (TensorSpec((64, 1024)),)
BASELINE, CANDIDATE = 30, 20  # calls of the operator: the true ratio is 1.5
IDEAL = 10.0  # far above all ratios here, so that none looks too good
SAME_WITHIN = 0.02
SAME_TRIALS = 3


@dataclass
class Cell:
    """Hold the verdicts on one question under one condition."""

    condition: str
    question: str
    wanted: str
    load_before: float
    verdicts: Counter[str] = field(default_factory=Counter)
    ratios: list[float] = field(default_factory=list)
    pairs: list[int] = field(default_factory=list)
    elapsed_s: list[float] = field(default_factory=list)

    @property
    def runs(self) -> int:
        """Return the number of verdicts."""
        return self.verdicts.total()

    @property
    def wrong(self) -> int:
        """Return the number of verdicts that are not the wanted one."""
        return self.runs - self.verdicts[self.wanted]


def repeated(count: int) -> Program:
    """Return a program that computes tanh `count` times and returns one result; tracing keeps calls without users."""

    def program(x: torch.Tensor) -> torch.Tensor:
        results = [torch.tanh(x) for _ in range(count)]
        return results[-1]

    return Program(f"{count} times tanh", lambda: program, INPUT, 0)


def known(sandbox: Sandbox, candidate: int, baseline: int) -> Contest:
    """Return a contest with a known outcome."""
    draw = Draw(int.from_bytes(os.urandom(7), "little"), "speed verdicts")
    answer = traced(repeated(candidate), draw)
    speed = Speed(repeated(baseline), ideal_ratio=IDEAL)
    return contest(speed, draw, sandbox, 600.0, artifact=Artifact(answer.graph, answer.tensors))


@dataclass(frozen=True)
class Asked(Thresholds):
    """Hold the two ratios of the experiment, in place of those of an exercise."""

    passing: float = 1.2
    full: float = 2.0


def run(condition: str, around: Callable[[], AbstractContextManager[None]], sandbox: Sandbox, runs: int) -> list[Cell]:
    """Ask every question `runs` times under one condition."""
    load = os.getloadavg()[0]
    same = Cell(condition, "itself, 1.00 within 2 %", "within", load)
    passing = Cell(condition, "1.5 x, asked 1.2", str(Verdict.PASS), load)
    full = Cell(condition, "1.5 x, asked 2.0", str(Verdict.FAIL), load)
    with around():
        for i in range(runs):
            judge_known(known(sandbox, CANDIDATE, BASELINE), passing, full)
            if i % 10 == 0:
                against_itself(same, known(sandbox, BASELINE, BASELINE))
            print(f"  {condition}: {i + 1} of {runs}", file=sys.stderr, flush=True)
    return [same, passing, full]


def judge_known(of: Contest, passing: Cell, full: Cell) -> None:
    """Judge a contest by the judge's own rule, which decides on both ratios at once."""
    start_s = time.monotonic()
    trials: list[Trial] = []

    def attempt() -> Trial:
        trials.append(of.trial(Plan(enough=enough(asked))))
        return trials[-1]

    asked = Asked(IDEAL)
    result = assess(attempt, of.control, asked)
    for cell, decision in ((passing, result.passing), (full, result.full)):
        cell.verdicts[str(decision.verdict)] += 1
        cell.ratios.append(statistics.median(t.ratio for t in trials))
        cell.pairs.append(sum(len(t.pairs) for t in trials))
        cell.elapsed_s.append(time.monotonic() - start_s)
        if str(decision.verdict) != cell.wanted:
            print(f"  {cell.question}: {decision!r}", file=sys.stderr)


def against_itself(cell: Cell, of: Contest) -> None:
    """Compare the baseline with itself: the median over three trials in fresh processes."""
    start_s = time.monotonic()
    trials = [of.trial(Plan(max_pairs=60, budget_s=20.0)) for _ in range(SAME_TRIALS)]
    ratio = statistics.median(t.ratio for t in trials)
    cell.verdicts["within" if abs(ratio - 1) <= SAME_WITHIN else "beyond"] += 1
    cell.ratios.append(ratio)
    cell.pairs.append(sum(len(t.pairs) for t in trials))
    cell.elapsed_s.append(time.monotonic() - start_s)


def row(cell: Cell) -> dict[str, str]:
    """Return the row of a cell in the table."""
    return {
        "condition": cell.condition,
        "load before": f"{cell.load_before:.1f}",
        "question": cell.question,
        "wanted": cell.wanted,
        "runs": str(cell.runs),
        "wrong": str(cell.wrong),
        "verdicts": ", ".join(f"{name} {count}" for name, count in sorted(cell.verdicts.items())),
        "median ratio": f"{statistics.median(cell.ratios):.3f}",
        "pairs": f"{statistics.median(cell.pairs):.0f}",
        "s each": f"{statistics.median(cell.elapsed_s):.1f}",
        "wrong below (95 %)": f"{upper_bound(cell.wrong, cell.runs):.1%}",
    }


def table(cells: Sequence[Cell]) -> str:
    """Return a line for each cell."""
    rows = [row(cell) for cell in cells]
    return str(Table(tuple(rows[0]), tuple(tuple(one.values()) for one in rows), rule="none"))


def facts(cells: Sequence[Cell]) -> dict[str, object]:
    """Return everything that was found as plain data."""
    return {"cells": [asdict(cell) | row(cell) for cell in cells]}


def main() -> int:
    """Ask all questions and return the exit status."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="three runs of each, for CI")
    parser.add_argument("--runs", type=int, default=100, help="of each question under each condition")
    parser.add_argument("--only", choices=("idle", "loaded"), help="one condition instead of both")
    parser.add_argument("--results", type=Path, metavar="FOLDER", help="write the numbers as JSON there")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    print(environment(), flush=True)
    sandbox, runs = open_sandbox(), 3 if arguments.quick else arguments.runs
    conditions = {"idle": idle, "loaded": loaded}
    chosen = [arguments.only] if arguments.only else list(conditions)
    cells = [cell for name in chosen for cell in run(name, conditions[name], sandbox, runs)]
    print(f"\n{table(cells)}")
    if arguments.results:
        print(f"Written to {write('speed-verdicts', facts(cells), arguments.results)}")
    opposite = {str(Verdict.PASS): str(Verdict.FAIL), str(Verdict.FAIL): str(Verdict.PASS)}
    refuted = sum(cell.verdicts[opposite[cell.wanted]] for cell in cells if cell.wanted in opposite)
    return int(refuted > 0 if arguments.quick else any(cell.wrong for cell in cells))


if __name__ == "__main__":
    sys.exit(main())
