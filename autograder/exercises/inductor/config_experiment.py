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
Measured = Mapping[str, list[int]]
"""Kernels and bytes at both settings."""

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
PLANNED = ("program", "option", "settings", "hypothesis")
PARTS = (*PLANNED, "because", "kernels", "bytes", "c4", "verdict")
EXACT = 0.01  # tolerance for a ratio that was rounded for the record
FEWEST_WORDS = 5
FUNCTIONS = "lowered counts functions of C++, which may hold several loops; scheduled counts loops that were fused."
LARGEST = 1e18  # limit for numbers in a record; larger integers cannot be compared with a ratio


@dataclass(frozen=True)
class Plan:
    """The plan of an experiment, before any measurement."""

    program: str
    option: str
    settings: tuple[int, int]
    hypothesis: Any  # the effect of the second setting on kernels and on bytes, compared with the first


def plan_of(record: Any, programs: Programs) -> Plan:
    """Return the plan in a record; raise `CheckFailedError` if it is incomplete, not allowed, or the notebook's own."""
    if not isinstance(record, dict):
        raise CheckFailedError(f"experiment returned a {type(record).__name__}; expected the record, a dict.")
    for part in PLANNED:
        part_of(record, part)
    program, option, settings = record["program"], record["option"], record["settings"]
    if not isinstance(program, str) or program not in programs:
        raise CheckFailedError(f"program is {program!r:.60}; expected one of {', '.join(programs)}.")
    if not isinstance(option, str) or option not in OPTIONS:
        raise CheckFailedError(f"option is {option!r:.60}; expected one of {', '.join(OPTIONS)}.")
    if (program, option) == DEMONSTRATED:
        raise CheckFailedError(f"{option} on {program!r} is the demonstration; choose another option or program.")
    return Plan(program, option, _settings(settings, option), record["hypothesis"])


def part_of(record: Record, part: str) -> Any:
    """Return one part of a record; raise `CheckFailedError` if it has none."""
    if part not in record:
        raise CheckFailedError(f"The record has no {part!r}; it needs {', '.join(PARTS)}.")
    return record[part]


def require_reason(record: Record) -> None:
    """Raise `CheckFailedError` unless the record says in a few words why the hypothesis is likely."""
    because = part_of(record, "because")
    if not isinstance(because, str) or len(because.split()) < FEWEST_WORDS:
        raise CheckFailedError("because should say in a sentence why the hypothesis is likely; people will read it.")


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
    inputs: int  # bytes of all inputs
    outputs: int

    @property
    def least(self) -> int:
        """Return the minimum of bytes."""
        return self.inputs + self.outputs

    @property
    def kernels(self) -> list[int]:
        """Return the number of kernels at both settings."""
        return [cost.fused_loops for cost in self.costs]

    @property
    def bytes(self) -> list[int]:
        """Return the bytes moved at both settings."""
        return [cost.bytes_moved for cost in self.costs]


def repeat(answer: ValueAnswer, plan: Plan, programs: Programs) -> Repeated:
    """Repeat the experiment of a plan in the clean worker."""
    steps = programs[plan.program]
    first, second = (lower_steps(answer.clean, steps, {plan.option: setting}) for setting in plan.settings)
    program, inputs = program_from_steps(steps)
    return Repeated((first, second), minimum_bytes(inputs, []), minimum_bytes([], [program(*inputs)]))


def require_counts(record: Record, found: Repeated) -> None:
    """Raise `CheckFailedError` unless kernels and bytes in the record equal the host's counts."""
    for part, expected in (("kernels", found.kernels), ("bytes", found.bytes)):
        told = part_of(record, part)
        if not _pair(told) or told != expected:
            likely = [says for wrong, says in _slips(part, found) if told == wrong]
            by_settings = record.get("bytes") != found.bytes  # explains both counts
            says = likely[-1 if by_settings else 0] if likely else ""
            usual = "Measure the programs that the question brings: their sizes change." if part == "bytes" else ""
            seen = f"{part} is {told!r:.60}; repeated, the experiment gives {expected}."
            raise CheckFailedError(f"{seen} {says or usual}".rstrip())


def _slips(part: str, found: Repeated) -> list[tuple[list[int], str]]:
    """Return the counts that known mistakes give in place of the host's."""
    first, second = found.kernels if part == "kernels" else found.bytes
    same_settings = [
        ([first] * 2, "Both runs had the first setting; hand each over as config."),
        ([second] * 2, "Both runs had the second setting; hand each over as config."),
        ([second, first], "The first number belongs to the first setting."),
    ]
    if part == "bytes":
        return same_settings
    return [
        ([cost.generated_kernels + cost.library_calls for cost in found.costs], FUNCTIONS),
        ([cost.generated_kernels for cost in found.costs], FUNCTIONS),
        *same_settings,
    ]


def measured(record: Record, found: Repeated) -> Measured:
    """Return the record's kernels and bytes: the host's, or those that a known mistake in counting gives.

    The check of the counts is the one that such a mistake costs. Raises `CheckFailedError` for other numbers.
    """
    for part in ("kernels", "bytes"):
        right = found.kernels if part == "kernels" else found.bytes
        if part_of(record, part) not in [right, *(wrong for wrong, _ in _slips(part, found))]:
            require_counts(record, found)
    return {"kernels": record["kernels"], "bytes": record["bytes"]}


def require_ratio(record: Record, found: Repeated) -> None:
    """Raise `CheckFailedError` unless c4 is the record's bytes over the least possible."""
    moved, told = measured(record, found)["bytes"], part_of(record, "c4")
    expected = [number / found.least for number in moved]
    if _pair(told) and all(map(_near, told, expected)):
        return
    wrong = {
        "C4 compares with the minimum, not with the first run.": [1.0, moved[1] / moved[0]],
        "It is upside down: bytes moved over the minimum.": [found.least / number for number in moved],
        "The minimum counts inputs and output; one of them was left out.": [number / found.inputs for number in moved],
        "The minimum counts inputs and output, not the output alone.": [number / found.outputs for number in moved],
        "The minimum is in bytes, as t.nbytes gives it, not in numbers.": [4 * number for number in expected],
    }
    says = next((says for says, values in wrong.items() if _pair(told) and all(map(_near, told, values))), "")
    shown = [round(number, 3) for number in expected]
    raise CheckFailedError(f"c4 is {told!r:.60}; repeated, the experiment gives {shown}. {says}".rstrip())


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


def require_verdict(record: Record, plan: Plan, numbers: Measured) -> None:
    """Raise `CheckFailedError` unless the verdict follows from hypothesis and numbers."""
    hypothesis = plan.hypothesis
    if not isinstance(hypothesis, dict) or any(hypothesis.get(what) not in WORDS for what in ("kernels", "bytes")):
        raise CheckFailedError(
            f"hypothesis is {hypothesis!r:.80}; expected what the second setting does, such as "
            '{"kernels": "same", "bytes": "more"}, out of ' + ", ".join(WORDS) + "."
        )
    seen = {what: _direction(pair) for what, pair in numbers.items()}
    wrong = [what for what, word in seen.items() if hypothesis[what] != word]
    expected = "refuted" if wrong else "confirmed"
    if part_of(record, "verdict") == expected:
        return
    told = f"verdict is {record['verdict']!r:.40}"
    if record["verdict"] not in ("confirmed", "refuted"):
        raise CheckFailedError(f"{told}; expected confirmed or refuted.")
    if not wrong:
        raise CheckFailedError(f"{told}; kernels and bytes both came out as the hypothesis says.")
    what = wrong[0]
    says = "Both parts of a hypothesis have to hold." if len(wrong) == 1 else ""
    if {hypothesis[what], seen[what]} == {"fewer", "more"}:
        says = "Compare the second setting with the first, not the reverse."
    raise CheckFailedError(
        f"{told}; the hypothesis says {hypothesis[what]} {what}, and the numbers say {seen[what]}. {says}".rstrip()
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


def without_effect(draw: Draw, usual: Programs) -> Programs:
    """Return programs of the usual names on which no option has an effect, and which move more than the least."""
    size = draw.integer(20, 60)
    # a product reads its operands from memory
    product = {"inputs": [{"shape": [size, size]}], "steps": [["sin", "%0"], ["mm", "%1", "%1"]]}
    return dict.fromkeys(usual, product)


def counts(answer: ValueAnswer, draw: Draw) -> None:
    """Check that the record gives a reason, and that its counts are right and differ."""
    programs = drawn(draw, 20, 48)
    record, plan = asked(answer, programs)
    require_reason(record)
    found = repeat(answer, plan, programs)
    require_counts(record, found)
    require_effect(found, plan)


def ratios(answer: ValueAnswer, draw: Draw) -> None:
    """Check C4 of an experiment, and of one in which the first run does not reach the minimum."""
    usual = drawn(draw, 20, 48)
    for programs in (usual, without_effect(draw, usual)):
        record, plan = asked(answer, programs)
        require_ratio(record, repeat(answer, plan, programs))


def verdict(answer: ValueAnswer, draw: Draw) -> None:
    """Check that the verdict follows from the hypothesis and the numbers of the record."""
    programs = drawn(draw, 20, 48)
    record, plan = asked(answer, programs)
    require_verdict(record, plan, measured(record, repeat(answer, plan, programs)))


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
    checks=(
        Check("kernels and bytes of the record repeat", "counts", 1.5, counts),
        Check("c4 is bytes over the minimum", "C4", 1, ratios),
        Check("the verdict follows", "verdict", 1, verdict),
    ),
)
