"""Exercise 14.5: guard a compiled package, which reads whatever it gets, by what its program promises."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from autograder.exercises.programs import packages
from autograder.host.draw import Draw
from autograder.host.exercise import Check, CheckFailedError, Exercise, Kind
from autograder.host.kinds.analysis import AnalysisAnswer
from autograder.host.kinds.differences import same

DTYPES = (("int8", "uint8"), ("float16", "bfloat16", "int16"), ("float32", "int32"), ("float64", "int64"))
"""Dtypes whose elements have 1, 2, 4 and 8 bytes."""
UNBOUNDED = 5000  # a size where a range has no end
Given = dict[str, Any]


@dataclass
class Promise:
    """What a program promises about its three inputs; see `packages`."""

    draw: Draw
    ranges: dict[str, tuple[int, int | None]]
    dims: list[list[Any]]
    dtypes: list[str]

    def least(self, name: str) -> int:
        """Return the least value of an open size."""
        return self.ranges[name][0]

    def largest(self, name: str) -> int:
        """Return the largest value of an open size."""
        return self.ranges[name][1] or UNBOUNDED

    def call(self, **sizes: int) -> list[Given]:
        """Return a call that fits; open sizes are drawn unless they are given."""
        chosen = {
            name: sizes.get(name, self.draw.integer(low + 1, high - 1 if high else low + 9))
            for name, (low, high) in self.ranges.items()
        }
        return [
            {"shape": [chosen.get(dim, dim) for dim in each], "dtype": dtype, "value": self.draw.integer(2, 99)}
            for each, dtype in zip(self.dims, self.dtypes, strict=True)
        ]

    def told(self) -> Given:
        """Return it as arguments of `packages.promised`."""
        return {"dims": self.dims, "dtypes": self.dtypes, "ranges": {k: list(v) for k, v in self.ranges.items()}}


def promise(draw: Draw, *, largest: bool = True, lengths: bool = False, least: int = 0) -> Promise:
    """Return a promise with an open batch and, with `lengths`, two more open sizes; all places of sizes are drawn.

    Without `largest` nothing is too large. A least size of 2 is one that the program's own `module()` does not check.
    """
    batch = (least or draw.integer(3, 9), draw.integer(30, 90) if largest else None)
    ranges: dict[str, tuple[int, int | None]] = {"batch": batch}
    if lengths:
        ranges |= {name: (draw.integer(3, 9), draw.integer(80, 300)) for name in ("length", "columns")}
    length, columns = ("length", "columns") if lengths else draw.sample(range(10, 19), 2)
    dims: list[list[Any]] = [["batch", length, draw.integer(5, 9)], ["batch", length], [columns, draw.integer(5, 9)]]
    if draw.chance(0.5):
        dims[2].append("batch")
    shuffled = [draw.sample(each, len(each)) for each in draw.sample(dims, len(dims))]
    return Promise(draw, ranges, shuffled, [draw.choice(draw.choice(DTYPES)) for _ in dims])


@dataclass
class Case:
    """A call of the guard of one program, or two that fit."""

    promise: Promise
    calls: list[list[Given]]
    number: int | None = None  # of the input that does not fit
    wrong: str = ""  # what does not fit; empty if all does


@dataclass
class Asked:
    """Calls of guards of different programs: what is sent to one says nothing about what another program takes."""

    draw: Draw
    options: Mapping[str, Any] = field(default_factory=dict)  # of `promise`
    cases: list[Case] = field(default_factory=list)

    def new(self) -> Promise:
        """Draw a promise."""
        return promise(self.draw, **self.options)

    def fit(self, promised: Promise | None = None, **sizes: int) -> None:
        """Add a call that fits."""
        promised = promised or self.new()
        self.cases.append(Case(promised, [promised.call(**sizes)]))

    def fit_twice(self) -> None:
        """Add two calls of one guard, of other sizes, that both fit."""
        promised = self.new()
        self.cases.append(Case(promised, [promised.call(), promised.call()]))

    def refuse(self, what: str, number: int | None = None, promised: Promise | None = None, **sizes: int) -> Case:
        """Add a call that must be refused and return it, to be changed unless its sizes are wrong."""
        promised = promised or self.new()
        self.cases.append(Case(promised, [promised.call(**sizes)], number, what))
        return self.cases[-1]


def fixed(asked: Asked) -> None:
    """Ask about sizes that are fixed."""
    asked.fit_twice()
    for number, name in enumerate(packages.NAMES):
        case = asked.refuse("", number)
        at = asked.draw.choice([i for i, dim in enumerate(case.promise.dims[number]) if isinstance(dim, int)])
        case.calls[0][number]["shape"][at] += asked.draw.choice((-2, -1, 1, 2))
        case.wrong = f"dimension {at} of `{name}` has another size than the fixed one"
    asked.fit()


def ranged(asked: Asked) -> None:
    """Ask about the ends of the batch's range."""
    asked.fit_twice()
    for end in (Promise.least, Promise.largest):
        promised = asked.new()
        asked.fit(promised, batch=end(promised, "batch"))
    refuse_beyond(asked, "batch")


def refuse_beyond(asked: Asked, name: str, *, above: bool = True) -> None:
    """Add calls with an open size that is too small and, with `above`, one that is too large."""
    promised = asked.new()
    least = promised.least(name)
    asked.refuse(f"a {name} of {least - 1} where {least} is the least", None, promised, **{name: least - 1})
    if above:
        promised = asked.new()
        largest = promised.largest(name)
        asked.refuse(f"a {name} of {largest + 1} where {largest} is the largest", None, promised, **{name: largest + 1})


def dtypes(asked: Asked) -> None:
    """Ask about other dtypes of the same size and of others."""
    asked.fit_twice()
    for number, of_same_size in ((0, True), (1, True), (2, True), (asked.draw.integer(0, 2), False)):
        case = asked.refuse("", number)
        promised = case.promise.dtypes[number]
        others = [d for group in DTYPES if (promised in group) == of_same_size for d in group if d != promised]
        case.calls[0][number]["dtype"] = other = asked.draw.choice(others)
        case.wrong = f"{other} in place of the dtype of input {number}"
    asked.fit()


Question = tuple[str, Callable[[Asked], None], Mapping[str, Any]]
"""A sentence about the rule, what asks, and the promise's options."""

FIXED: Question = ("A size that is a number must be that number.", fixed, {})
TYPED: Question = ("A package takes bits for numbers of its own dtype.", dtypes, {})
RANGES = "An open size has a range, ends included: program.range_constraints."
RANGED: tuple[Question, ...] = ((RANGES, ranged, {}), (RANGES, ranged, {"least": 2}))


def guards(*questions: Question) -> Callable[[AnalysisAnswer, Draw], None]:
    """Return a check that the guard lets pass what fits and refuses the rest; one wrong call loses all points."""

    def run(answer: AnalysisAnswer, draw: Draw) -> None:
        for rule, ask, options in questions:
            asked = Asked(draw, options)
            ask(asked)
            for case in draw.sample(asked.cases, len(asked.cases)):
                for call, report in zip(case.calls, reported(answer, case), strict=True):
                    if case.wrong:
                        require_refused(call, report, f"{case.wrong}. {rule}")
                    else:
                        require_passed(call, report)

    return run


def reported(answer: AnalysisAnswer, case: Case) -> list[Mapping[str, Any]]:
    """Return what the guard of this program did with each call."""
    program = packages.saved(packages.promised(**case.promise.told()))
    found = answer.employ(packages, "guarded_calls", program=program, calls=case.calls)
    if not isinstance(found, list) or len(found) != len(case.calls):
        raise CheckFailedError("guarded returned no function that can be called with tensors.")
    return [report if isinstance(report, dict) else {} for report in found]


def require_passed(call: Sequence[Given], report: Mapping[str, Any]) -> None:
    """Raise `CheckFailedError` unless the guard returned what the package makes of this call's tensors."""
    about = f"For {shown(call)}, which the program takes"
    if raised := report.get("raised"):
        raise CheckFailedError(f"{about}, the guard raised {raised}: {report.get('said')!s:.160}")
    if not same(report.get("returned"), [given["value"] for given in call]):
        raise CheckFailedError(
            f"{about}, the guard returned something else than the package. Call it with the same tensors, and return "
            "its result."
        )


def require_refused(call: Sequence[Given], report: Mapping[str, Any], rule: str) -> None:
    """Raise `CheckFailedError` unless the guard raised ValueError."""
    if report.get("raised") != "ValueError":
        what = f"raised {report['raised']}" if report.get("raised") else "raised nothing"
        raise CheckFailedError(f"For {shown(call)} the guard {what}; expected ValueError: {rule}")


def shown(call: Sequence[Given]) -> str:
    """Return a call in words."""
    each = (f"{given['dtype']} {given['shape']}" + " swapped" * ("swapped" in given) for given in call)
    return f"({', '.join(each)})"


def says_which(answer: AnalysisAnswer, draw: Draw) -> None:
    """Raise `CheckFailedError` unless each message names the first input that does not fit."""
    asked = Asked(draw)
    fixed(asked)
    for case in asked.cases:
        if case.number is None:
            continue
        (call,), (report,) = case.calls, reported(answer, case)
        name, said = packages.NAMES[case.number], str(report.get("said"))
        require_refused(call, report, case.wrong)
        if name not in said or any(other in said for other in packages.NAMES if other != name):
            raise CheckFailedError(
                f"For {shown(call)} the message is {said!r:.120}. It should name `{name}` and no other input: "
                f"{case.wrong}."
            )


EXERCISE = Exercise(
    title="Guard a package",
    kind=Kind.ANALYSIS,
    entry_point="guarded",
    points=6,
    wall_s=60,
    hints=(
        "Outside the guard, take for each user input its name and meta['val']. Inside, compare each tensor with it.",
        "str(size) is a number or a symbol. Make a dict from str(symbol) to its range, of program.range_constraints.",
        "A dict, new in each call, keeps each symbol's size: where sizes.setdefault(symbol, size) != size, refuse.",
    ),
    checks=(
        Check("the range of the batch", "ranges", 1, guards(*RANGED)),
        Check("fixed sizes", "sizes", 0.5, guards(FIXED)),
        Check("dtypes", "dtypes", 1, guards(TYPED)),
        Check("the message names the input", "messages", 0.5, says_which),
    ),
)
