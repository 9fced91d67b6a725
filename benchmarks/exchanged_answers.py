"""Grade every reference solution as an answer to every other exercise.

    python -m benchmarks.exchanged_answers [--exercises ID ...] [--quick]

`--exercises` chooses the exercises that are asked; each gets the solutions of all others. Exit status 1 if one of them
passed: if it earned a quarter of the points or more.
"""

import argparse
import sys
import time
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace

from autograder.exercises import all_exercises, find
from autograder.exercises.registry import hidden_part
from autograder.host.exercise import REFERENCE, Exercise
from autograder.host.grading import graded_parts
from autograder.host.judge import judge
from autograder.host.records import ExerciseStatus
from autograder.host.sandbox import Sandbox, open_sandbox

PASSED = 0.25  # share of the points that no exchange may reach
SEED = 20
WALL_S = 10.0  # for one answer, since some never end on inputs of another exercise
QUICK = ("00_read_a_table", "05_bias_silu_pass", "08_decompose")


@dataclass(frozen=True)
class Exchange:
    """Hold the points of the solution of `other` as an answer to `asked`."""

    asked: str
    other: str
    points: float
    of: float

    @property
    def share(self) -> float:
        """Return the share of the exercise's points."""
        return self.points / self.of


def exchange(asked_id: str, other_id: str, sandbox: Sandbox, seed: int = SEED) -> Exchange:
    """Grade the solution of one exercise as an answer to another."""
    asked, part = replace(find(asked_id, hidden=True), wall_s=WALL_S, speed=None), hidden_part(other_id)
    if part is None:
        raise SystemExit("The hidden cases are not installed: without them there are no solutions to exchange.")
    reference = next(c.answer for c in part.controls if c.name == REFERENCE)
    record = judge(asked, exchanged(asked, find(other_id), reference), sandbox=sandbox, seed=seed)
    if record.status is ExerciseStatus.GRADER_ERROR:
        raise SystemExit(f"{other_id} for {asked_id} was not graded: {record.message}")
    return Exchange(asked_id, other_id, record.points, asked.points)


def exchanged(asked: Exercise, other: Exercise, reference: str) -> Mapping[str, str]:
    """Return the parts of a hand-in for `asked` whose function is that of `reference`, a solution of `other`."""
    named = "" if other.entry_point == asked.entry_point else f"\n\n{asked.entry_point} = {other.entry_point}\n"
    setups = f"{asked.setup}\n{other.setup}"
    return graded_parts(replace(asked, setup=setups), {asked.id: reference + named})


def exchanges(asked: Iterable[str], others: Iterable[str]) -> Iterator[Exchange]:
    """Yield every exchange of two different exercises, two at a time."""
    pairs = [(a, o) for a in asked for o in others if a != o]
    sandbox = open_sandbox()
    with ThreadPoolExecutor(max_workers=2) as pool:
        yield from pool.map(lambda pair: exchange(pair[0], pair[1], sandbox), pairs)


def main() -> int:
    """Print the exchanges that earned points; see the module."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--exercises", nargs="+", metavar="ID", default=list(all_exercises()))
    parser.add_argument("--quick", action="store_true", help="three exercises among each other")
    options = parser.parse_args()
    asked, others = (QUICK, QUICK) if options.quick else (options.exercises, all_exercises())
    started, count, earned, passed = time.monotonic(), 0, 0, []
    print(f"{'asked':34}{'handed in':34}{'points':>8}{'of':>6}")
    for each in exchanges(asked, others):
        count += 1
        if each.points:
            earned += 1
            print(f"{each.asked:34}{each.other:34}{each.points:>8.2f}{each.of:>6g}", flush=True)
        if each.share >= PASSED:
            passed.append(each)
    taken = time.monotonic() - started
    print(f"\n{count} exchanges in {taken:.0f} s: {count - earned} earned nothing, {len(passed)} passed")
    return 1 if passed else 0


if __name__ == "__main__":
    sys.exit(main())
