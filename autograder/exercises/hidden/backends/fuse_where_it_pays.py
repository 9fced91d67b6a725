"""Hidden checks and controls of exercise 10.5."""

import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping, Set
from dataclasses import dataclass
from typing import Any

from autograder.exercises.backends.fuse_where_it_pays import (
    MIXED,
    NEAR_TIME,
    PAIRS,
    REPEATED,
    SPILLED,
    Kernels,
    digest,
    drawn,
    of_each,
    require_near_best,
    require_time,
)
from autograder.exercises.hidden.answer_files import Answers
from autograder.exercises.programs.timed_rows import Program, Wish, kernel_work, random_program, time_ns
from autograder.host.draw import Draw
from autograder.host.exercise import Check, Control, HiddenPart
from autograder.host.kinds.value import ValueAnswer

CROWDED = Wish(rows=13, small=0.0, far=0.8, launch_ns=(1500,), scratch_ns=(0.004, 0.008))
Work = Mapping[tuple[int, int], Mapping[str, float]]
"""What a kernel does, for each run of rows from the first number up to the second."""


def works_of(program: Program) -> Work:
    """Return the work of every run of rows."""
    return {run: kernel_work(program, *run) for run in _runs(program)}


def _runs(program: Program) -> list[tuple[int, int]]:
    return [(first, last) for last in range(1, len(program["rows"]) + 1) for first in range(last)]


def loads_first(program: Program) -> str:
    """Return the digest of the kernels that were best if each kernel loaded all its values at its begin."""
    works = {run: kernel_work(program, *run, loads_first=True) for run in _runs(program)}
    return digest(best_kernels(program, works))


def best_kernels(program: Program, works: Work, *, longest: int | None = None) -> Kernels:
    """Return the kernels of least total time, of all divisions into runs of rows, each of at most `longest` rows."""
    names = [row["name"] for row in program["rows"]]
    best: list[tuple[float, list[int]]] = [(0.0, [])]
    for last in range(1, len(names) + 1):
        plans = [
            (best[n][0] + time_ns(program, works[n, last]), [*best[n][1], n]) for n in range(last)[-(longest or last) :]
        ]
        best.append(min(plans))
    cuts = [*best[-1][1], len(names)]
    return [names[cuts[n] : cuts[n + 1]] for n in range(len(cuts) - 1)]


def _all(program: Program, works: Work) -> Kernels:
    return [[row["name"] for row in program["rows"]]]


def _none(program: Program, works: Work) -> Kernels:
    return [[row["name"]] for row in program["rows"]]


def _no_spills(program: Program, works: Work) -> Kernels:
    return best_kernels(program, {run: {**work, "scratch": 0.0} for run, work in works.items()})


def _worked_once(program: Program, works: Work) -> Kernels:
    own = {(a, b): sum(program["sizes"][row["name"]] for row in program["rows"][a:b]) for a, b in works}
    return best_kernels(program, {run: {**work, "operation": own[run]} for run, work in works.items()})


MISTAKES: dict[str, tuple[Callable[[Program, Work], Kernels], str]] = {
    "all": (
        _all,
        "All rows were fused. That repeats small rows for every element of a large one, and spills what finds no "
        "register.",
    ),
    "none": (_none, "No rows were fused: each value is stored and loaded again, and each row is a launch."),
    "no spills": (
        _no_spills,
        "These kernels were best if there were enough registers. Count what is spilled and reloaded.",
    ),
    "worked once": (
        _worked_once,
        "These kernels were best if a small row ran for its own elements only. In a kernel with a large value it is "
        "repeated for each of its elements.",
    ),
}


def facts_of(program: Program) -> Mapping[str, Any]:
    """Return the least time, what each mistake takes beside it, and the sentences about mistakes."""
    works = works_of(program)

    def total(kernels: Kernels) -> float:
        ends = list(itertools.accumulate(map(len, kernels), initial=0))
        return sum(time_ns(program, works[run]) for run in itertools.pairwise(ends))

    best = total(best_kernels(program, works))
    wrong = {name: find(program, works) for name, (find, _) in MISTAKES.items()}
    pairs = best_kernels(program, works, longest=2)
    return {
        "best": best,
        "losses": {name: total(kernels) / best for name, kernels in {**wrong, PAIRS: pairs}.items()},
        "wrong": {digest(kernels): MISTAKES[name][1] for name, kernels in reversed(wrong.items())},
    }


Leaving = Callable[[Mapping[str, int]], Iterable[str]]
"""From the next use of each value that may leave its register to the values of which one leaves."""


def by_name(program: Program, works: Work) -> Work:
    """Return the work of every run of rows if the value with the last name left its register, a known mistake."""

    def scratch(first: int, last: int) -> float:
        (count,) = _counts(program, first, last, lambda next_use: [max(next_use)])
        return count * float(max(program["sizes"][row["name"]] for row in program["rows"][first:last]))

    return {run: {**work, "scratch": scratch(*run)} for run, work in works.items()}


def is_settled(program: Program) -> bool:
    """Return whether it changes nothing, in any run of rows, which of several values with the same next use leaves."""
    return all(len(_counts(program, *run, _farthest)) == 1 for run in _runs(program))


def _farthest(next_use: Mapping[str, int]) -> Iterable[str]:
    return (name for name, use in next_use.items() if use == max(next_use.values()))


@dataclass(frozen=True)
class _State:
    """Where the values of a run are before one of its rows."""

    registers: frozenset[str] = frozenset()
    scratch: frozenset[str] = frozenset()
    count: int = 0  # of spills and reloads


def _counts(program: Program, first: int, last: int, leaving: Leaving) -> set[int]:
    """Return the numbers of spills and reloads that a run of rows can have, over all values that may leave."""
    rows, states = program["rows"][first:last], {_State()}
    for place, row in enumerate(rows):
        for name in [*row["reads"], row["name"]]:
            rest = rows[place + (name == row["name"]) :]
            next_use = {each: n for n, reader in reversed([*enumerate(rest)]) for each in reader["reads"]}
            bound = frozenset(row["reads"])  # which stay for this row
            states = {
                each for state in states for each in _after(state, name, next_use, bound, program["registers"], leaving)
            }
    return {state.count for state in states}


def _after(
    state: _State, name: str, next_use: Mapping[str, int], bound: Set[str], registers: int, leaving: Leaving
) -> Iterator[_State]:
    """Yield the states after `name` has got a register, one for each value that may leave for it."""
    held = state.registers.intersection(next_use)
    if name in held or len(held) < registers:
        choices = [frozenset[str]()]
    else:
        choices = [frozenset({each}) for each in leaving({each: next_use[each] for each in held - bound})]
    for gone in choices:
        scratch = state.scratch | gone
        more = len(gone - state.scratch) + (name in scratch and name not in held)
        yield _State(held - gone | {name}, scratch, state.count + more)


def crowded(draw: Draw) -> Program:
    """Draw a program whose time shows which value leaves its register: by another rule the prediction is far off."""
    while True:
        found = random_program(draw, CROWDED)
        works = works_of(found)
        wrong = by_name(found, works)
        ends = list(itertools.accumulate(map(len, best_kernels(found, wrong)), initial=0))
        predicted, right = (sum(time_ns(found, by[run]) for run in itertools.pairwise(ends)) for by in (wrong, works))
        if abs(predicted / right - 1) > 1.5 * NEAR_TIME and is_settled(found):
            return found


def _require_all(answer: ValueAnswer, program: Program) -> None:
    """Raise `CheckFailedError` unless kernels and time are right: kernels without spills would make the time easy."""
    require_near_best(answer, program)
    require_time(answer, program)


ANSWERS = Answers(__name__)

MORE_STYLES = ("a class of kernels", "a trace of reads", "branches that are cut off", "instructions first")
PLAN = """
def divide(question):
    names = [row['name'] for row in question['rows']]
    return {{'kernels': {}, 'time': question['prices']['launch']}}
"""
SLIPS: tuple[Any, ...] = (
    ("bytes are elements", 8, True, ("prices['byte'] * 4 *", "prices['byte'] *")),
    ("no launches", 8, True, ("prices['launch'] + moving", "moving")),
    ("no spills", 7, True, (" + prices['scratch'] * scratch", "")),
    ("no operations", 6, True, ("prices['operation'] * len(inside) + ", "")),
    (
        "a small row works once",
        6.5,
        True,
        ("len(inside) +", "sum((sizes[name] for name in made)) / max((sizes[name] for name in made)) +"),
    ),
    ("outputs are not stored", 9, True, (" | set(question['outputs'])", "")),
    ("all values are stored", 9, True, ("made & later", "made")),
    ("spills without reloads", 9.7, True, ("scratch + (name in spilled and name not in held)", "scratch")),
    ("any value leaves", 9.8, True, (", key=uses.get)", ")")),
    ("one register more", 8, True, ("== question['registers']", "== question['registers'] + 1")),
    (
        "all loads at the begin",
        9.8,
        True,
        (
            "[*row['reads'], row['name']]",
            "[*(n for r in inside * (not place) for n in r['reads'] if n not in made), *row['reads'], row['name']]",
        ),
    ),
    ("the dearest kernels", 3, True, ("best.append(min(", "best.append(max(")),
    ("the time of one launch", 8, True, ("'time': time", "'time': prices['launch']")),
)
"""Likely slips: name, marks, whether it gets less, and edits of the reference."""

HIDDEN = HiddenPart(
    checks=(
        Check(
            "ten programs near the least time",
            "kernels",
            2,
            of_each(require_near_best, *[drawn(MIXED, "all", "none")] * 10),
        ),
        Check(
            "small rows that would be repeated",
            "repeated work",
            1,
            of_each(require_near_best, *[drawn(REPEATED, "all", "none", "worked once")] * 4),
        ),
        Check(
            "values without a register",
            "spills",
            0.5,
            of_each(require_near_best, *[drawn(SPILLED, "all", "none", "no spills")] * 4),
        ),
        Check("the value that leaves its register", "spills", 0.5, of_each(_require_all, *[crowded] * 3)),
        Check("the time of many kernels", "time", 1, of_each(require_time, *[drawn(MIXED, "none", PAIRS)] * 6)),
    ),
    controls=(
        ANSWERS.reference(10),
        *ANSWERS.styles(10),
        *(ANSWERS.file(name, 10) for name in MORE_STYLES),
        *(ANSWERS.edited(name, marks, *edits, below=below) for name, marks, below, *edits in SLIPS),
        ANSWERS.file("never spills", 5, below=True),  # where most values fit, its kernels may be the best ones
        Control("all in one", PLAN.format("[names]"), 0.5, below=True),  # sometimes a launch takes most of the time
        Control("each row alone", PLAN.format("[[name] for name in names]"), 0),
        Control("pairs", PLAN.format("[names[n : n + 2] for n in range(0, len(names), 2)]"), 0.5, below=True),
        Control("sets of names", PLAN.format("set(names)"), 0),
    ),
    equivalent={"0.0 -> 1.0": "a nanosecond more for all plans, of thousands"},
)
