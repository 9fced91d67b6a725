"""Exercise 14.5: guard a compiled package, which reads whatever it gets, by what its program promises."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from autograder.exercises.programs import packages
from autograder.host.draw import Draw
from autograder.host.exercise import Check, CheckFailedError, Exercise, Kind
from autograder.host.kinds.analysis import AnalysisAnswer
from autograder.host.kinds.differences import same

FLOATS = ("float32", "float64", "bfloat16")
WHOLE = ("int32", "int64", "int16")
Given = dict[str, Any]


@dataclass
class Promise:
    """What a program promises about its three inputs; see `packages`."""

    draw: Draw
    ranges: dict[str, tuple[int, int | None]]
    width: int
    dims: list[list[Any]]
    dtypes: list[str]

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
    """Return a promise with an open batch and, with `lengths`, an open length; without `largest` nothing is too large.

    The mask has its own open number of columns where there are lengths. A least size of 2 is one that the program's
    own `module()` does not check.
    """
    batch = (least or draw.integer(3, 6), draw.integer(40, 70) if largest else None)
    ranges: dict[str, tuple[int, int | None]] = {"batch": batch}
    if lengths:
        ranges |= {"length": (draw.integer(3, 6), draw.integer(80, 99)), "columns": (2, 300)}
    width, length = draw.integer(5, 9), "length" if lengths else draw.integer(12, 18)
    hidden = ["batch", length, width]
    mask = ["batch", "columns" if lengths else draw.integer(10, 11)]
    floats = draw.choice(FLOATS)
    return Promise(draw, ranges, width, [hidden, [*hidden], mask], [floats, floats, draw.choice(WHOLE)])


@dataclass
class Asked:
    """Calls of one guard: those that fit, and those that it must refuse, each with the number of the wrong input."""

    promise: Promise
    fits: list[list[Given]] = field(default_factory=list)
    refused: list[tuple[list[Given], int | None, str]] = field(default_factory=list)  # call, input, what is wrong

    def fit(self, **sizes: int) -> None:
        """Add a call that fits."""
        self.fits.append(self.promise.call(**sizes))

    def refuse(self, what: str, number: int | None = None, **sizes: int) -> list[Given]:
        """Add a call that must be refused and return it, to be changed unless its sizes are wrong."""
        call = self.promise.call(**sizes)
        self.refused.append((call, number, what))
        return call


def fixed(asked: Asked) -> None:
    """Ask about sizes that are fixed."""
    asked.fit()
    for number, at, by in ((0, 2, -1), (1, 1, 1), (2, 1, -2)):
        call = asked.refuse(f"dimension {at} of `{packages.NAMES[number]}` has another size than the fixed one", number)
        call[number]["shape"][at] += by
    asked.fit()


def ranged(asked: Asked) -> None:
    """Ask about the ends of the batch's range."""
    low, high = asked.promise.ranges["batch"]
    assert high is not None
    for batch in (low, high, (low + high) // 2):
        asked.fit(batch=batch)
    asked.refuse(f"a batch of {high + 1} where {high} is the largest", batch=high + 1)
    asked.refuse(f"a batch of {low - 1} where {low} is the least", batch=low - 1)


def dtypes(asked: Asked) -> None:
    """Ask about other dtypes of the same size and of others."""
    asked.fit()
    for number, other in ((0, "float16"), (1, "complex64"), (2, "bool"), (2, "uint8")):
        asked.refuse(f"{other} in place of the dtype of input {number}")[number]["dtype"] = other
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
            asked = Asked(promise(draw, **options))
            ask(asked)
            reports = reported(answer, asked)
            for call, report in zip(asked.fits, reports, strict=False):
                require_passed(call, report)
            for (call, _, what), report in zip(asked.refused, reports[len(asked.fits) :], strict=True):
                require_refused(call, report, f"{what}. {rule}")

    return run


def reported(answer: AnalysisAnswer, asked: Asked) -> list[Mapping[str, Any]]:
    """Return what the guard did with each call, first those that fit; it gets them in a random order."""
    calls = [*asked.fits, *(call for call, _, _ in asked.refused)]
    order = asked.promise.draw.sample(range(len(calls)), len(calls))
    given = [calls[place] for place in order]
    program = packages.saved(packages.promised(**asked.promise.told()))
    found = answer.employ(packages, "guarded_calls", program=program, calls=given)
    if not isinstance(found, list) or len(found) != len(calls):
        raise CheckFailedError("guarded returned no function that can be called with tensors.")
    reports = dict(zip(order, found, strict=True))
    return [report if isinstance(report := reports[place], dict) else {} for place in range(len(calls))]


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
    asked = Asked(promise(draw))
    fixed(asked)
    reports = reported(answer, asked)
    for (call, number, what), report in zip(asked.refused, reports[len(asked.fits) :], strict=True):
        assert number is not None
        name, said = packages.NAMES[number], str(report.get("said"))
        require_refused(call, report, what)
        if name not in said or any(other in said for other in packages.NAMES if other != name):
            raise CheckFailedError(
                f"For {shown(call)} the message is {said!r:.120}. It should name `{name}` and no other input: {what}."
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
