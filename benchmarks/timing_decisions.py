"""Measure how often the rule that decides on a speedup is wrong, where the true ratio is known.

    python -m benchmarks.timing_decisions [--minutes MINUTES] [--seed SEED] [--results FOLDER] [--quick]

The baseline repeats an operation m times and the candidate n times, so the true ratio is m / n on every machine.
Pairs are taken with `course_lib.timing.compare` and judged by `decide_speedup` for a threshold of 1.2, whose cut is
1.152: idle, and while another process keeps all other cores busy. A PASS is wrong if the true ratio is 4 % or more
below the cut, and a FAIL if it is 4 % or more above. Two simple rules are tested on the same times too: is the ratio
of the means, or of the fastest times, above the cut?

Exit status: 0 if at most 1 % of the verdicts on each side are wrong, idle and loaded; 1 otherwise. A run with
`--quick` takes one verdict of each kind on few pairs, which proves nothing about the rule, so its status is 0.
"""

import argparse
import dataclasses
import datetime
import itertools
import json
import os
import random
import statistics
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import torch

from course_lib.show import Table
from course_lib.timing import Verdict, compare, decide_speedup, environment
from course_lib.timing.paired_runs import Comparison

THRESHOLD, CUT = 1.2, 1.152
# (repetitions of the candidate, of the baseline): the true ratio is the second over the first.
BELOW = ((20, 20), (20, 21), (20, 22))
ABOVE = ((20, 24), (20, 25), (20, 26))
WRONG_LIMIT = 0.01
CONFIDENCE = 0.95
MAX_PAIRS, QUICK_PAIRS, BUDGET_S = 200, 20, 2.0

Step = Callable[[], object]


@dataclasses.dataclass
class Cell:
    """Hold the verdicts on one operation, under one condition, at one true ratio."""

    condition: str
    operation: str
    ratio: float
    load_before: float = 0.0  # load average of the minute before, which shows how idle the machine was
    verdicts: Counter[str] = dataclasses.field(default_factory=Counter)
    pairs: list[int] = dataclasses.field(default_factory=list)
    elapsed_s: list[float] = dataclasses.field(default_factory=list)
    errors: list[float] = dataclasses.field(default_factory=list)  # of the median ratio, as a fraction
    wrong_means: int = 0
    wrong_minima: int = 0

    @property
    def is_below(self) -> bool:
        """Tell whether the candidate should fail."""
        return self.ratio < CUT

    @property
    def trials(self) -> int:
        """Return the number of verdicts."""
        return self.verdicts.total()

    @property
    def wrong(self) -> int:
        """Return the number of verdicts that are the opposite of the truth."""
        return self.verdicts[Verdict.PASS if self.is_below else Verdict.FAIL]

    @property
    def undecided(self) -> int:
        """Return the number of verdicts that are neither PASS nor FAIL."""
        return self.verdicts[Verdict.INCONCLUSIVE] + self.verdicts[Verdict.ENVIRONMENT]

    def add(self, comparison: Comparison) -> None:
        """Judge one comparison by each rule."""
        self.verdicts[decide_speedup(comparison.pairs, THRESHOLD).verdict] += 1
        self.pairs.append(len(comparison.pairs))
        self.elapsed_s.append(comparison.elapsed_s)
        self.errors.append(comparison.ratio / self.ratio - 1)
        candidate, baseline = comparison.candidate.times_us, comparison.baseline.times_us
        self.wrong_means += (statistics.fmean(baseline) / statistics.fmean(candidate) < CUT) != self.is_below
        self.wrong_minima += (min(baseline) / min(candidate) < CUT) != self.is_below


def compute() -> Step:
    """Return a step that stays in the caches: tanh of 1,024 numbers."""
    x, out = torch.randn(1_024), torch.empty(1_024)
    return lambda: torch.tanh(x, out=out)


def memory() -> Step:
    """Return a step that streams through memory: a copy of 256 KB, from another part of 32 MB each time.

    Both sides take turns on the same 32 MB. With buffers of its own, the side that repeats less would find more of them
    in the cache, and the true ratio would be unknown.
    """
    source, target = (torch.full((128, 65_536), number) for number in (1.0, 2.0))
    turns = itertools.cycle(zip(target, source, strict=True))

    def step() -> object:
        into, out_of = next(turns)
        return into.copy_(out_of)

    return step


def repeated(step: Step, count: int) -> Step:
    """Return a call that runs `step` `count` times."""
    rounds = range(count)

    def work() -> None:
        for _ in rounds:
            step()

    return work


OPERATIONS: dict[str, Callable[[], Step]] = {"compute": compute, "memory": memory}


@contextmanager
def loaded() -> Iterator[None]:
    """Keep every core but one busy within the block."""
    command = [sys.executable, "-S", "-c", "print(flush=True)\nwhile True: sum(range(100_000))"]
    hogs = [subprocess.Popen(command, stdout=subprocess.PIPE) for _ in range(max(1, (os.cpu_count() or 2) - 1))]
    try:
        for hog in hogs:
            assert hog.stdout is not None
            hog.stdout.readline()  # from now on it computes
        yield
    finally:
        for hog in hogs:
            hog.kill()
            hog.communicate()


@contextmanager
def idle() -> Iterator[None]:
    """Add no load to the machine."""
    yield


def run(condition: str, budget_s: float, lot: random.Random, max_pairs: int) -> list[Cell]:
    """Judge comparisons of every kind in turn until the time is over; each has fresh tensors."""
    kinds = [(name, counts) for name in OPERATIONS for counts in (*BELOW, *ABOVE)]
    load = os.getloadavg()[0]
    cells = {kind: Cell(condition, kind[0], kind[1][1] / kind[1][0], load) for kind in kinds}
    end_s = time.monotonic() + budget_s
    while time.monotonic() < end_s:
        for kind in lot.sample(kinds, len(kinds)):
            name, (candidate, baseline) = kind
            step = OPERATIONS[name]()
            seed = lot.randrange(2**32)
            taken = compare(
                repeated(step, candidate),
                repeated(step, baseline),
                threshold=THRESHOLD,
                device="cpu",
                max_pairs=max_pairs,
                budget_s=BUDGET_S,
                warmup_s=0.005,
                seed=seed,
            )
            cells[kind].add(taken)
    return list(cells.values())


def upper_bound(wrong: int, trials: int) -> float:
    """Return the upper bound of the true rate with 95 % confidence (Clopper and Pearson, 1934)."""
    low, high = wrong / trials, 1.0
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (low, middle) if at_most(wrong, trials, middle) < 1 - CONFIDENCE else (middle, high)
    return high


def at_most(wrong: int, trials: int, rate: float) -> float:
    """Return the probability of at most so many wrong verdicts at this rate."""
    term = total = (1 - rate) ** trials
    for k in range(wrong):
        if rate == 1.0:
            return 0.0
        term *= (trials - k) / (k + 1) * rate / (1 - rate)
        total += term
    return total


def row(cell: Cell) -> dict[str, str]:
    """Return the row of a cell in the table."""
    return {
        "condition": cell.condition,
        "load before": f"{cell.load_before:.1f}",
        "operation": cell.operation,
        "true ratio": f"{cell.ratio:.2f}",
        "trials": str(cell.trials),
        "pass": str(cell.verdicts[Verdict.PASS]),
        "fail": str(cell.verdicts[Verdict.FAIL]),
        "undecided": str(cell.undecided),
        "wrong": str(cell.wrong),
        "pairs": f"{statistics.median(cell.pairs):.0f}",
        "ms each": f"{1e3 * statistics.fmean(cell.elapsed_s):.0f}",
        "error of ratio": f"{statistics.median(map(abs, cell.errors)):.2%}",
        "wrong by means": f"{cell.wrong_means / cell.trials:.1%}",
        "wrong by minima": f"{cell.wrong_minima / cell.trials:.1%}",
    }


def table(cells: list[Cell]) -> str:
    """Return a line for each cell."""
    rows = [row(cell) for cell in cells]
    columns = tuple(rows[0])
    return str(Table(columns, tuple(tuple(one.values()) for one in rows), numbers=columns, rule="none"))


def summary(cells: list[Cell]) -> tuple[str, bool]:
    """Return a line for each condition and side, and whether every side keeps to the limit."""
    lines, kept = [], True
    for condition in dict.fromkeys(cell.condition for cell in cells):
        for is_below, told in ((True, "wrongly passed"), (False, "wrongly failed")):
            side = [cell for cell in cells if cell.condition == condition and cell.is_below == is_below]
            wrong, trials = sum(cell.wrong for cell in side), sum(cell.trials for cell in side)
            undecided = sum(cell.undecided for cell in side)
            kept = kept and wrong <= WRONG_LIMIT * trials
            lines.append(
                f"{condition}: {wrong} of {trials} {told} ({wrong / trials:.2%}; with 95 % confidence below "
                f"{upper_bound(wrong, trials):.2%}), {undecided} undecided"
            )
    return "\n".join(lines), kept


def facts(cells: list[Cell]) -> dict[str, object]:
    """Return everything that was found as plain data."""
    summed = summary(cells)[0].splitlines()
    return {"threshold": THRESHOLD, "cells": [row(cell) for cell in cells], "summary": summed}


def write(name: str, found: Mapping[str, object], folder: Path) -> Path:
    """Write what was found as NAME-DATE.json into `folder`, with the date and the machine, and return its path."""
    folder.mkdir(parents=True, exist_ok=True)
    date = datetime.datetime.now(datetime.UTC).date().isoformat()
    record = {"schema": f"fusion-course/{name}/1", "date": date, "machine": environment().to_json(), **found}
    path = folder / f"{name}-{date}.json"
    path.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
    return path


def main() -> int:
    """Run the experiment under both conditions and return the exit status."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--minutes", type=float, default=4.0, help="for both conditions together")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--results", type=Path, metavar="FOLDER", help="write the numbers as JSON there")
    parser.add_argument("--quick", action="store_true", help="one verdict of each kind, on few pairs")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    print(environment(), flush=True)
    cells: list[Cell] = []
    for condition, around in (("idle", idle), ("loaded", loaded)):
        with around():
            minutes, max_pairs = (0.001, QUICK_PAIRS) if arguments.quick else (arguments.minutes, MAX_PAIRS)
            cells += run(condition, 60 * minutes / 2, random.Random(arguments.seed), max_pairs)
    told, kept = summary(cells)
    print(f"\nThreshold {THRESHOLD}, cut {CUT}\n\n{table(cells)}\n\n{told}")
    if arguments.results:
        print(f"Written to {write('timing-decisions', facts(cells), arguments.results)}")
    return 0 if kept or arguments.quick else 1


if __name__ == "__main__":
    sys.exit(main())
