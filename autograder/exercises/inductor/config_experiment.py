"""Exercise 09.5: make an experiment with one option of Inductor, and record it.

The answer is a function that makes the experiment on the host's programs and returns the record. The host repeats it
in a clean worker with new random sizes, and compares; invented numbers do not agree. Option and settings are looked up
in a table; no text of the answer is evaluated.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from autograder.host.checks.inductor_checks import Lowered, lower_steps, minimum_bytes
from autograder.host.draw import Draw
from autograder.host.exercise import Check, CheckFailedError, Exercise, Kind
from autograder.host.kinds.value import ValueAnswer
from course_lib.models import option_programs, program_from_steps

Programs = Mapping[str, Any]
Record = Mapping[str, Any]

# The smallest and the largest setting; None for options that are True or False.
OPTIONS: Mapping[str, tuple[int, int] | None] = {
    "max_fusion_size": (1, 64),
    "realize_reads_threshold": (1, 100),
    "realize_opcount_threshold": (1, 100),
    "realize_acc_reads_threshold": (1, 100),
    "unroll_reductions_threshold": (1, 100),
    "pattern_matcher": None,
}
DEMONSTRATED = ("softmax", "max_fusion_size")
WORDS = ("fewer", "same", "more")
PARTS = ("program", "option", "settings", "hypothesis", "because", "kernels", "bytes", "c4", "verdict")
EXACT = 0.01  # tolerance for a ratio that was rounded for the record
FEWEST_WORDS = 5
LARGEST = 1e18  # limit for numbers in a record; larger integers cannot be compared with a ratio


@dataclass(frozen=True)
class Plan:
    """The plan of an experiment, before any measurement."""

    program: str
    option: str
    settings: tuple[int, int]
    kernels: str  # one of WORDS: the effect of the second setting, compared with the first
    bytes: str


def plan_of(record: Any, programs: Programs) -> Plan:
    """Return the plan in a record; raise `CheckFailedError` if it is incomplete, not allowed, or the notebook's own."""
    if not isinstance(record, dict):
        raise CheckFailedError(f"experiment returned a {type(record).__name__}; expected the record, a dict.")
    missing = [part for part in PARTS if part not in record]
    if missing:
        raise CheckFailedError(f"The record has no {missing[0]!r}; it needs {', '.join(PARTS)}.")
    program, option, settings = record["program"], record["option"], record["settings"]
    if not isinstance(program, str) or program not in programs:
        raise CheckFailedError(f"program is {program!r:.60}; expected one of {', '.join(programs)}.")
    if not isinstance(option, str) or option not in OPTIONS:
        raise CheckFailedError(f"option is {option!r:.60}; expected one of {', '.join(OPTIONS)}.")
    if (program, option) == DEMONSTRATED:
        raise CheckFailedError(f"{option} on {program!r} is the demonstration; choose another option or program.")
    first, second = _settings(settings, option)
    said = record["hypothesis"]
    if not isinstance(said, dict) or any(said.get(what) not in WORDS for what in ("kernels", "bytes")):
        raise CheckFailedError(
            f"hypothesis is {said!r:.80}; expected what the second setting does, such as "
            '{"kernels": "same", "bytes": "more"}, out of ' + ", ".join(WORDS) + "."
        )
    because = record["because"]
    if not isinstance(because, str) or len(because.split()) < FEWEST_WORDS:
        raise CheckFailedError("because should say in a sentence why the hypothesis is likely; people will read it.")
    return Plan(program, option, (first, second), said["kernels"], said["bytes"])


def _settings(settings: Any, option: str) -> tuple[int, int]:
    bounds = OPTIONS[option]
    expected = f"whole numbers from {bounds[0]} to {bounds[1]}" if bounds else "True and False"
    if (
        not isinstance(settings, list)
        or len(settings) != 2
        or not all(_allowed(setting, bounds) for setting in settings)
        or settings[0] == settings[1]
    ):
        raise CheckFailedError(f"settings is {settings!r:.60}; {option} takes two different ones, {expected}.")
    return settings[0], settings[1]


def _allowed(setting: Any, bounds: tuple[int, int] | None) -> bool:
    if bounds is None:
        return type(setting) is bool
    return type(setting) is int and bounds[0] <= setting <= bounds[1]


@dataclass(frozen=True)
class Repeated:
    """The host's counts at both settings."""

    costs: tuple[Lowered, Lowered]
    least: int  # minimum of bytes

    @property
    def kernels(self) -> list[int]:
        """Return the number of kernels at both settings."""
        return [cost.fused_loops for cost in self.costs]

    @property
    def bytes(self) -> list[int]:
        """Return the bytes moved at both settings."""
        return [cost.bytes_moved for cost in self.costs]

    @property
    def c4(self) -> list[float]:
        """Return the ratio of bytes to the least possible at both settings."""
        return [cost.bytes_moved / self.least for cost in self.costs]


def repeat(answer: ValueAnswer, plan: Plan, programs: Programs) -> Repeated:
    """Repeat the experiment of a plan in the clean worker."""
    steps = programs[plan.program]
    first, second = (lower_steps(answer.clean, steps, {plan.option: setting}) for setting in plan.settings)
    program, inputs = program_from_steps(steps)
    return Repeated((first, second), minimum_bytes(inputs, [program(*inputs)]))


def require_numbers(record: Record, found: Repeated) -> None:
    """Raise `CheckFailedError` unless the numbers in the record equal the host's counts."""
    for part, expected in (("kernels", found.kernels), ("bytes", found.bytes), ("c4", found.c4)):
        told = record[part]
        exact = part != "c4"  # a ratio may be rounded
        if not _pair(told) or (told != expected if exact else not all(map(_near, told, expected))):
            shown = [round(number, 3) for number in expected]
            raise CheckFailedError(
                f"{part} is {told!r:.60}; repeated, the experiment gives {shown}. {_why(part, told, found)}".rstrip()
            )


def _why(part: str, told: Any, found: Repeated) -> str:
    """Return the likely mistake for numbers that are wrong in a known way."""
    first, second = found.costs
    said: dict[str, list[tuple[list[float], str]]] = {
        "kernels": [
            (
                [cost.generated_kernels + cost.library_calls for cost in found.costs],
                "lowered counts functions of C++, which may hold several loops; scheduled(...).kernels counts loops "
                "that were fused.",
            ),
        ],
        "bytes": [
            ([first.bytes_moved] * 2, "Both runs had the first setting; hand it over as config."),
            ([second.bytes_moved, first.bytes_moved], "The first number belongs to the first setting."),
        ],
        "c4": [
            ([1.0, second.bytes_moved / first.bytes_moved], "C4 compares with the minimum, not with the first run."),
            ([found.least / moved for moved in found.bytes], "It is upside down: bytes moved over the minimum."),
        ],
    }
    usual = "Measure the programs that the question brings: their sizes change." if part == "bytes" else ""
    return next((sentence for wrong, sentence in said[part] if _pair(told) and all(map(_near, told, wrong))), usual)


def _pair(told: Any) -> bool:
    return isinstance(told, list) and len(told) == 2 and all(map(_ordinary, told))


def _ordinary(number: Any) -> bool:
    return type(number) in (int, float) and abs(number) < LARGEST


def _near(told: float, expected: float) -> bool:
    return abs(told - expected) <= EXACT * expected


def require_effect(found: Repeated, plan: Plan) -> None:
    """Raise `CheckFailedError` if the two settings give the same numbers."""
    if (found.kernels[0], found.bytes[0]) == (found.kernels[1], found.bytes[1]):
        raise CheckFailedError(
            f"{plan.option} at {plan.settings[0]} and at {plan.settings[1]} gives the same kernels and bytes for "
            f"{plan.program!r}, which says little about it. Choose settings further apart, or another program."
        )


def require_verdict(record: Record, plan: Plan, found: Repeated) -> None:
    """Raise `CheckFailedError` unless the verdict follows from hypothesis and numbers."""
    seen = {"kernels": _direction(found.kernels), "bytes": _direction(found.bytes)}
    wrong = [what for what, word in seen.items() if getattr(plan, what) != word]
    expected = "refuted" if wrong else "confirmed"
    if record["verdict"] == expected:
        return
    told = f"verdict is {record['verdict']!r:.40}"
    if record["verdict"] not in ("confirmed", "refuted"):
        raise CheckFailedError(f"{told}; expected confirmed or refuted.")
    if not wrong:
        raise CheckFailedError(f"{told}; kernels and bytes both came out as the hypothesis says.")
    what = wrong[0]
    says = "Both parts of a hypothesis have to hold." if len(wrong) == 1 else ""
    if {getattr(plan, what), seen[what]} == {"fewer", "more"}:
        says = "Compare the second setting with the first, not the reverse."
    raise CheckFailedError(
        f"{told}; the hypothesis says {getattr(plan, what)} {what}, and the numbers say {seen[what]}. {says}".rstrip()
    )


def _direction(numbers: list[int]) -> str:
    return WORDS[(numbers[1] > numbers[0]) - (numbers[1] < numbers[0]) + 1]


def drawn(draw: Draw, smallest: int, largest: int) -> Programs:
    """Return the notebook's programs in random sizes."""
    return option_programs(draw.integer(smallest, largest), draw.integer(smallest, largest))


def asked(answer: ValueAnswer, programs: Programs) -> tuple[Record, Plan]:
    """Ask the answer for a record, and return the record and the plan in it."""
    record = answer.ask({"programs": dict(programs)})
    return record, plan_of(record, programs)


def recorded(answer: ValueAnswer, draw: Draw) -> None:
    """Check that the record is complete and its numbers are right and differ; the verdict gives a third of the mark."""
    programs = drawn(draw, 20, 48)
    record, plan = asked(answer, programs)
    found = repeat(answer, plan, programs)
    require_numbers(record, found)
    require_effect(found, plan)
    try:
        require_verdict(record, plan, found)
    except CheckFailedError as error:
        raise CheckFailedError(str(error), share=2 / 3) from None


EXERCISE = Exercise(
    title="An experiment with an option",
    kind=Kind.VALUE,
    entry_point="experiment",
    points=5,
    wall_s=90,
    hints=(
        "Run scheduled twice on one program, with two settings of one option as config, and look at its loops. Which "
        "of the options could matter to a program that reads its neighbours, or adds up many inputs?",
        "Write plan and hypothesis down as constants, measure in a loop over the settings, and compute the verdict "
        "from the numbers: it has to be able to come out either way.",
        "cost.bytes_moved stands in what scheduled returns; the minimum is the sum of t.nbytes over inputs and output; "
        "the verdict is a comparison of both directions with the hypothesis.",
    ),
    checks=(Check("the record is complete, its numbers repeat, and the verdict follows", "record", 3, recorded),),
)
