"""Measure how often the judge's verdict on a known speedup is wrong, with real workers and the C++ bodies.

    python -m benchmarks.grading.speed_verdicts [--quick] [--runs N] [--only idle|loaded] [--results FOLDER]

A graph that calls the C++ body of `bias_silu` n times on its inputs is judged against one that calls it m times and
gives the same output. All calls are equal, so the true ratio is m / n. Only the first call differs: it reads inputs
that are in no cache, which takes as long as a few calls. With n = 200 a true 2 becomes
about 1.96 and a true 1.5 about 1.47, as the column `median ratio` shows, so the cuts are never nearer than 2 %.

For true ratios of 0.9, 1.0, 1.15, 1.5 and 2, the judge decides on a cut 5 % below, where PASS is right, and on one 5 %
above, where FAIL is right. The opposite verdict is wrong. An undecided verdict costs a student nothing, so it is
counted apart. Then 1.5 must always PASS for 1.2 and FAIL for 2.0, the baseline against itself must be 1.00 within 2 %,
and exercise 05.5 is judged in its own size, for the time of a verdict. All of it is done idle, and while other
processes keep all cores but one busy. `--quick` judges each once, and only whether the opposite of the truth was found.

Exit status: 0 if at most 1 % of the verdicts on each side are wrong, at most 25 % on each side undecided, all far ones
right, and half of all verdicts took less than 10 s, under each condition; 1 otherwise.
"""

import argparse
import dataclasses
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

from autograder.exercises import find
from autograder.host.artifacts import Artifact
from autograder.host.clock.contest import Contest, measure
from autograder.host.clock.trial import Job, Plan
from autograder.host.draw import Draw
from autograder.host.sandbox import Sandbox, open_sandbox
from autograder.host.speed import Speed, Thresholds
from autograder.host.traced import Program, TensorSpec, traced
from benchmarks.timing_decisions import idle, loaded, upper_bound, write
from course_lib.kernels import bias_silu
from course_lib.kernels.bias_silu import formula
from course_lib.kernels.cpu.library import cpu_bodies
from course_lib.show import Table
from course_lib.timing import Verdict, environment
from course_lib.timing.decisions import GUARD

INPUTS = (TensorSpec((128, 768)), TensorSpec((768,)))
CANDIDATE = 200  # calls of the operator, so many that the first one, which reads new inputs, weighs little
BASELINES = (180, 200, 230, 300, 400)  # true ratios of 0.9, 1.0, 1.15, 1.5 and 2
AWAY = 1.05  # from the true ratio to either cut
FAR = (300, 1.2, 2.0)  # calls of the baseline, and ratios that are asked: these verdicts must all be right
IDEAL = 10.0  # far above all ratios here, so that none looks too good
RARELY = 6  # of so many runs, one asks the other questions too
WRONG_LIMIT, UNDECIDED_LIMIT, MOST_S = 0.01, 0.25, 10.0
SAME_WITHIN = 0.02
SAME_TRIALS = 3
PASS, FAIL = str(Verdict.PASS), str(Verdict.FAIL)
OPPOSITE = {PASS: FAIL, FAIL: PASS, "within": "beyond"}
ANY = "any"  # where the truth is unknown


@dataclass
class Cell:
    """Hold the verdicts on one question under one condition."""

    condition: str
    question: str
    wanted: str
    load_before: float
    is_strict: bool = False  # an undecided verdict is wrong, too
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
        """Return the number of verdicts that are the opposite of the truth, or not the truth where it is strict."""
        if self.is_strict:
            return self.runs - self.verdicts[self.wanted]
        return self.verdicts[OPPOSITE.get(self.wanted, "")]

    @property
    def undecided(self) -> int:
        """Return the number of verdicts that decide nothing."""
        return 0 if self.wanted == ANY else self.runs - self.verdicts[self.wanted] - self.wrong

    def add(self, verdict: str, ratio: float, pairs: int, elapsed_s: float) -> None:
        """Count one verdict."""
        self.verdicts[verdict] += 1
        self.ratios.append(ratio)
        self.pairs.append(pairs)
        self.elapsed_s.append(elapsed_s)
        if verdict == OPPOSITE.get(self.wanted):
            print(f"  WRONG {self.condition}, {self.question}: {verdict} at {ratio:.3f}", file=sys.stderr, flush=True)


@dataclass(frozen=True)
class Asked(Thresholds):
    """Hold the two ratios of the experiment, in place of those of an exercise."""

    passing: float = FAR[1]
    full: float = FAR[2]


@dataclass(frozen=True)
class Known(Contest):
    """A contest with a known outcome, and the ratios that are asked."""

    asked: Thresholds = Asked(IDEAL)

    @property
    def thresholds(self) -> Thresholds:
        """Return the ratios that are asked."""
        return self.asked

    def job(self) -> Job:
        """Return the work with one call as the reference, since all calls give the same output."""
        return dataclasses.replace(super().job(), reference=lambda problem: (formula(*problem),))


def repeated(count: int) -> Program:
    """Return a program that calls the operator `count` times and returns one result; tracing keeps all calls."""

    def program(x: torch.Tensor, bias: torch.Tensor) -> torch.Tensor:
        results: list[torch.Tensor] = [bias_silu(x, bias) for _ in range(count)]
        return results[-1]

    return Program(f"{count} times bias_silu", lambda: program, INPUTS, 0)


def _draw() -> Draw:
    return Draw(int.from_bytes(os.urandom(7), "little"), "speed verdicts")


def known(sandbox: Sandbox, candidate: int, baseline: int, asked: Thresholds) -> Known:
    """Return a contest with a known outcome."""
    draw = _draw()
    answer = traced(repeated(candidate), draw)
    speed = Speed(repeated(baseline), ideal_ratio=IDEAL)
    artifact = Artifact(answer.graph, answer.tensors)
    return Known(speed, traced(speed.program, draw), sandbox, 600.0, draw, artifact=artifact, asked=asked)


def near(baseline: int) -> Asked:
    """Return the ratios that put the judge's cuts a little below and above the true ratio."""
    ratio = baseline / CANDIDATE
    return Asked(IDEAL, passing=round(ratio / AWAY / (1 - GUARD), 4), full=round(ratio * AWAY / (1 - GUARD), 4))


def as_graded(sandbox: Sandbox) -> Contest:
    """Return the contest of exercise 05.5 for the right answer, in the size that is graded."""
    speed, draw = find("05_bias_silu_pass", hidden=False).speed, _draw()
    assert speed is not None, "the exercise has points for speed"
    fused = Program("fused", lambda: lambda x, b: bias_silu(x, b), speed.program.inputs, 0)
    answer = traced(fused, draw)
    artifact = Artifact(answer.graph, answer.tensors)
    return Contest(speed, traced(speed.program, draw), sandbox, 600.0, draw, artifact=artifact)


def run(condition: str, around: Callable[[], AbstractContextManager[None]], sandbox: Sandbox, runs: int) -> list[Cell]:
    """Ask every question `runs` times under one condition, the last three less often."""
    load = os.getloadavg()[0]
    asked = {baseline: near(baseline) for baseline in BASELINES}
    cells = {
        baseline: tuple(
            Cell(condition, f"{baseline / CANDIDATE:.2f} x, cut {threshold * (1 - GUARD):.3f}", wanted, load)
            for threshold, wanted in ((asked[baseline].passing, PASS), (asked[baseline].full, FAIL))
        )
        for baseline in BASELINES
    }
    far = tuple(
        Cell(condition, f"1.50 x, asked {threshold}", wanted, load, is_strict=True)
        for threshold, wanted in zip(FAR[1:], (PASS, FAIL), strict=True)
    )
    same = Cell(condition, "itself, 1.00 within 2 %", "within", load, is_strict=True)
    graded = Cell(condition, "05.5 as graded", ANY, load)
    with around():
        for i in range(runs):
            for baseline in BASELINES:
                judge(known(sandbox, CANDIDATE, baseline, asked[baseline]), *cells[baseline])
            if i % RARELY == 0:
                judge(known(sandbox, CANDIDATE, int(FAR[0]), Asked(IDEAL)), *far)
                judge(as_graded(sandbox), graded)
                against_itself(same, known(sandbox, CANDIDATE, CANDIDATE, Asked(IDEAL)))
            print(f"  {condition}: {i + 1} of {runs}", file=sys.stderr, flush=True)
    return [*(cell for both in cells.values() for cell in both), *far, graded, same]


def judge(of: Contest, passing: Cell, *full: Cell) -> None:
    """Judge a contest as an answer is judged; one verdict decides on both ratios."""
    start_s = time.monotonic()
    record, result = measure(of)
    elapsed_s = time.monotonic() - start_s
    for cell, decision in zip((passing, *full), (result.passing, result.full), strict=False):
        cell.add(str(decision.verdict), record.ratio, record.pairs, elapsed_s)


def against_itself(cell: Cell, of: Contest) -> None:
    """Compare the baseline with itself: the median over three trials in fresh processes."""
    start_s = time.monotonic()
    trials = [of.trial(Plan(max_pairs=60, budget_s=20.0)) for _ in range(SAME_TRIALS)]
    ratio = statistics.median(t.ratio for t in trials)
    verdict = "within" if abs(ratio - 1) <= SAME_WITHIN else "beyond"
    cell.add(verdict, ratio, sum(len(t.pairs) for t in trials), time.monotonic() - start_s)


def sides(cells: Sequence[Cell]) -> list[Cell]:
    """Return the verdicts near a cut together, for each condition and side."""
    made = []
    for condition in dict.fromkeys(cell.condition for cell in cells):
        for wanted, name in ((PASS, "all with a cut below"), (FAIL, "all with a cut above")):
            found = [c for c in cells if (c.condition, c.wanted, c.is_strict) == (condition, wanted, False)]
            if not found:
                continue
            total = Cell(condition, name, wanted, found[0].load_before)
            for cell in found:
                total.verdicts += cell.verdicts
                total.elapsed_s += cell.elapsed_s
            made.append(total)
    return made


def row(cell: Cell) -> dict[str, str]:
    """Return the row of a cell in the table; the last three columns are empty where they say nothing."""
    ends = statistics.quantiles(cell.elapsed_s, n=20)[-1] if cell.runs > 1 else cell.elapsed_s[0]
    return {
        "condition": cell.condition,
        "load before": f"{cell.load_before:.1f}",
        "question": cell.question,
        "wanted": cell.wanted,
        "runs": str(cell.runs),
        "wrong": str(cell.wrong),
        "undecided": str(cell.undecided),
        "s each": f"{statistics.median(cell.elapsed_s):.1f}",
        "s, 95 %": f"{ends:.1f}",
        "wrong below (95 %)": "" if cell.wanted == ANY else f"{upper_bound(cell.wrong, cell.runs):.1%}",
        "median ratio": f"{statistics.median(cell.ratios):.3f}" if cell.ratios else "",
        "pairs": f"{statistics.median(cell.pairs):.0f}" if cell.pairs else "",
    }


def table(cells: Sequence[Cell]) -> str:
    """Return a line for each cell."""
    rows = [row(cell) for cell in cells]
    return str(Table(tuple(rows[0]), tuple(tuple(one.values()) for one in rows), rule="none"))


def facts(cells: Sequence[Cell]) -> dict[str, object]:
    """Return everything that was found as plain data."""
    return {"cells": [asdict(cell) | row(cell) | {"verdicts": dict(cell.verdicts)} for cell in cells]}


def failures(cells: Sequence[Cell], *, quick: bool) -> list[str]:
    """Return a sentence for each limit that is exceeded."""
    if quick:
        refuted = [c for c in cells if c.verdicts[OPPOSITE.get(c.wanted, "")] and c.wanted in (PASS, FAIL)]
        return [f"{c.condition}, {c.question}: the opposite of the truth." for c in refuted]
    found = [f"{c.condition}, {c.question}: {c.wrong} of {c.runs} wrong." for c in cells if c.is_strict and c.wrong]
    for total in sides(cells):
        where = f"{total.condition}, {total.question}"
        if total.wrong > WRONG_LIMIT * total.runs:
            found.append(f"{where}: {total.wrong} of {total.runs} wrong.")
        if total.undecided > UNDECIDED_LIMIT * total.runs:
            found.append(f"{where}: {total.undecided} of {total.runs} undecided.")
        if statistics.median(total.elapsed_s) >= MOST_S:
            found.append(f"{where}: a verdict takes {statistics.median(total.elapsed_s):.1f} s.")
    return found


def main() -> int:
    """Ask all questions and return the exit status."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="each question once, for CI")
    parser.add_argument("--runs", type=int, default=60, help="of each question under each condition")
    parser.add_argument("--only", choices=("idle", "loaded"), help="one condition instead of both")
    parser.add_argument("--results", type=Path, metavar="FOLDER", help="write the numbers as JSON there")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    bodies = "C++" if cpu_bodies(torch.empty(1)) else "eager, since the C++ ones are not built"
    print(f"{environment()}\nbodies of the operators: {bodies}", flush=True)
    sandbox, runs = open_sandbox(), 1 if arguments.quick else arguments.runs
    conditions = {"idle": idle, "loaded": loaded}
    chosen = [arguments.only] if arguments.only else list(conditions)
    cells = [cell for name in chosen for cell in run(name, conditions[name], sandbox, runs)]
    print(f"\n{table([*cells, *sides(cells)])}")
    if arguments.results:
        print(f"Written to {write('speed-verdicts', facts(cells), arguments.results)}")
    found = failures(cells, quick=arguments.quick)
    print("\n".join(found))
    return int(bool(found))


if __name__ == "__main__":
    sys.exit(main())
