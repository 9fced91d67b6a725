"""The words, marks and numbers of every report, so that reports use one name for each thing."""

from collections.abc import Iterable
from dataclasses import dataclass

from autograder.host.records import (
    BonusRecord,
    CheckRecord,
    CheckStatus,
    EarnedBy,
    ExerciseRecord,
    ExerciseStatus,
    KernelRecord,
    SpeedRecord,
    SpeedVerdict,
)
from course_lib.show import format_bytes, format_us

# a category shows its worst status
_WORST_FIRST = (CheckStatus.ERROR, CheckStatus.FAILED, CheckStatus.PASSED, CheckStatus.NOT_ASSESSED)
CHECK_MARKS = {CheckStatus.PASSED: "✓", CheckStatus.FAILED: "✗", CheckStatus.ERROR: "!", CheckStatus.NOT_ASSESSED: "–"}
CHECK_WORDS = {
    CheckStatus.PASSED: "passed",
    CheckStatus.FAILED: "failed",
    CheckStatus.ERROR: "error",
    CheckStatus.NOT_ASSESSED: "not assessed here",
}
EXERCISE_WORDS = {
    ExerciseStatus.GRADED: "graded",
    ExerciseStatus.STUDENT_ERROR: "the answer raised an error",
    ExerciseStatus.TIMED_OUT: "stopped at the time limit",
    ExerciseStatus.OUT_OF_MEMORY: "stopped at the memory limit",
    ExerciseStatus.KILLED: "its process ended before answering",
    ExerciseStatus.MALFORMED_ANSWER: "the answer could not be read",
    ExerciseStatus.NOT_FOUND: "not answered",
    ExerciseStatus.UNDECIDED: "undecided: a person must say which answer counts",
    ExerciseStatus.GRADER_ERROR: "not graded: an error of ours",
}
_UNITS = {"us": "µs", "ms": "ms", "s": "s", "bytes": "bytes", "percent": "%"}
SPEED_WORDS = {
    SpeedVerdict.PASS: "fast enough",
    SpeedVerdict.FAIL: "not fast enough",
    SpeedVerdict.INCONCLUSIVE: "too close to call",
    SpeedVerdict.ENVIRONMENT: "not judged, because of the machine",
    SpeedVerdict.SHOWN: "shown, not graded",
}


@dataclass(frozen=True)
class HiddenCategory:
    """All hidden checks of one category, as one line."""

    category: str
    status: CheckStatus
    points: float
    max_points: float
    by: EarnedBy | None = None


def hidden_categories(checks: Iterable[CheckRecord]) -> list[HiddenCategory]:
    """Return one line for each category of hidden ones among `checks`, in order of first appearance."""
    groups: dict[tuple[str, EarnedBy | None], list[CheckRecord]] = {}
    for check in checks:
        if check.hidden:
            groups.setdefault((check.category, check.by), []).append(check)
    return [_one_line(category, group) for (category, _), group in groups.items()]


def _one_line(category: str, group: list[CheckRecord]) -> HiddenCategory:
    statuses = {check.status for check in group}
    worst = next(status for status in _WORST_FIRST if status in statuses)
    points, max_points = sum(c.points for c in group), sum(c.max_points for c in group)
    return HiddenCategory(category, worst, points, max_points, group[0].by)


def check_words(status: CheckStatus, exercise: ExerciseStatus) -> str:
    """Return a check's mark and word; while the exercise is not answered, its checks are open, not failed."""
    if exercise is ExerciseStatus.NOT_FOUND:
        return "○ open"
    return f"{CHECK_MARKS[status]} {CHECK_WORDS[status]}"


def earned_by(by: EarnedBy | None) -> str:
    """Return how the points for speed were decided, to stand behind a check's name; empty for other points.

    >>> earned_by(EarnedBy.MEASURED), earned_by(None)
    (' · speed, measured', '')
    """
    return f" · speed, {by}" if by else ""


def number(value: float) -> str:
    """Return a number with thousands separators and few decimals.

    >>> number(10.0), number(2.5), number(1536000.0), number(0.3333333)
    ('10', '2.5', '1,536,000', '0.333')
    """
    if value == int(value):
        return f"{int(value):,}"
    return f"{value:,.3g}" if abs(value) < 1 else f"{value:,.2f}".rstrip("0")


def marks(points: float, max_points: float) -> str:
    """Return points out of points, e.g. `7.5 / 10`."""
    return f"{number(round(points, 2))} / {number(round(max_points, 2))}"


def percent(part: float, whole: float) -> int:
    """Return `part` of `whole` in percent, rounded down, so that only the whole gives 100; 0 of 0 gives 0."""
    return int(100 * part / whole + 1e-9) if whole > 0 else 0


def quantity(key: str, value: float) -> str:
    """Return a counted or measured quantity in words, its unit taken from the end of its name.

    >>> quantity("bytes_moved", 4096), quantity("time_us", 41.5), quantity("peak_memory_bytes", 10)
    ('bytes moved 4,096', 'time 41.5 µs', 'peak memory 10 bytes')
    """
    stem, _, last = key.rpartition("_")
    if stem and last in _UNITS:
        return f"{quantity_name(stem)} {number(value)} {_UNITS[last]}"
    return f"{quantity_name(key)} {number(value)}"


def quantity_name(key: str) -> str:
    """Return the name of a quantity in words: `bytes_moved` becomes `bytes moved`."""
    return key.replace("_", " ")


def check_marks(check: CheckRecord | HiddenCategory) -> str:
    """Return a check's earned and maximum points, or a dash if it was not assessed."""
    return "–" if check.status is CheckStatus.NOT_ASSESSED else marks(check.points, check.max_points)


def with_minimum(counted: dict[str, float]) -> tuple[list[tuple[str, float, float]], list[tuple[str, float]]]:
    """Split quantities into those that have a `…_minimum` and the others; keep their order.

    >>> with_minimum({"launches": 3.0, "launches_minimum": 1.0, "matches": 2.0})
    ([('launches', 3.0, 1.0)], [('matches', 2.0)])
    """
    pairs = [(k, v, counted[f"{k}_minimum"]) for k, v in counted.items() if f"{k}_minimum" in counted]
    used = {name for key, _, _ in pairs for name in (key, f"{key}_minimum")}
    return pairs, [(k, v) for k, v in counted.items() if k not in used]


def discrimination_word(value: float | None) -> str:
    """Return a check's discrimination with its sign, or a dash where there is none.

    >>> discrimination_word(0.312), discrimination_word(-0.05), discrimination_word(None)
    ('+0.31', '-0.05', '–')
    """
    return "–" if value is None else f"{value:+.2f}"


def bonus_headline(bonus: BonusRecord) -> str:
    """Return what the bonus is, e.g. `6 of 10 for the time of a training step, beside the points`."""
    if not bonus.assessed:
        return "for the time of a training step, not assessed here"
    return f"{number(bonus.points)} of {number(bonus.max_points)} for the time of a training step, beside the points"


def bonus_reason(bonus: BonusRecord) -> str:
    """Return the reason, and how long the first step took to build and run."""
    first = f" The first step was finished after {bonus.first_step_s:.1f} s." if bonus.first_step_s else ""
    return f"{bonus.reason}{first}"


def speed_words(record: ExerciseRecord) -> str:
    """Return what the measured speed of a record decided; a bonus has no counted cost in place of an open verdict."""
    if record.speed is None:
        return ""
    words = SPEED_WORDS[record.speed.verdict]
    is_decided = record.bonus is not None or record.speed.verdict in (SpeedVerdict.PASS, SpeedVerdict.FAIL)
    return words if is_decided else f"{words}: counted cost decides"


def speed_headline(speed: SpeedRecord) -> str:
    """Return the ratio with its interval, e.g. `1.48 times as fast as the baseline (95 %: 1.44 to 1.53)`."""
    interval = f"95 %: {speed.ratio_low:.2f} to {speed.ratio_high:.2f}"
    return f"{speed.ratio:.2f} times as fast as the baseline ({interval})"


def speed_details(speed: SpeedRecord) -> str:
    """Return the times, the number of pairs and the device behind the ratio."""
    pairs = f"{speed.pairs} pairs" + (f" in {speed.attempts} attempts" if speed.attempts > 1 else "")
    times = f"{format_us(speed.answer_us)} for a call of yours, {format_us(speed.baseline_us)} for one of the baseline"
    return f"Median times: {times} ({pairs}, {speed.device})."


def speed_asked(speed: SpeedRecord) -> str:
    """Return the ratios that earn points, and the largest possible ratio."""
    about = "about what a good answer reaches on a CPU" if speed.device == "cpu" else "what the fewest bytes allow"
    possible = f"{speed.ideal:.3g} is {about}."
    if not speed.passing:
        return f"A ratio of {speed.ideal:.3g} would be ideal."
    where = "Where the ratio is graded" if speed.verdict is SpeedVerdict.SHOWN else "Asked"
    return f"{where}: {speed.passing:.3g} passes, {speed.full:.3g} earns all points, {possible}"


def speed_doubt(speed: SpeedRecord) -> str:
    """Return that the interval leaves open which side is faster, and what to do; empty if it is decided."""
    undecided = speed.ratio_low <= 1 <= speed.ratio_high
    if speed.verdict is not SpeedVerdict.SHOWN or not speed.passing or not undecided:
        return ""
    return (
        "The interval holds 1, so this measurement does not tell which of the two is faster. Close other programs and "
        "check again."
    )


def speed_cost(speed: SpeedRecord) -> str:
    """Return the launches and bytes that explain the ratio; empty where they were not counted."""
    yours, baseline = speed.answer_cost, speed.baseline_cost
    if yours is None or baseline is None:
        return ""
    return (
        f"Counted for one timed call: the baseline launches {baseline.launches} and moves "
        f"{format_bytes(baseline.bytes_moved)}; yours launches {yours.launches} and moves "
        f"{format_bytes(yours.bytes_moved)}."
    )


def speed_roofline(speed: SpeedRecord) -> str:
    """Return the ratio that the counted bytes alone allow, and the traffic that was reached; empty without counts."""
    yours, baseline = speed.answer_cost, speed.baseline_cost
    if yours is None or baseline is None or not (yours.bytes_moved and baseline.bytes_moved):
        return ""
    rates = [c.bytes_moved / time_us / 1e3 for c, time_us in ((yours, speed.answer_us), (baseline, speed.baseline_us))]
    limit = baseline.bytes_moved / yours.bytes_moved
    beyond = speed.ratio_low > limit
    other = " The ratio is higher, so the baseline also waits for something else, such as new memory." * beyond
    return (
        f"Roofline: if only memory traffic takes time, these bytes allow a ratio of {limit:.2f}.{other} "
        f"Reached: {rates[0]:.3g} GB/s, and {rates[1]:.3g} GB/s by the baseline."
    )


def all_is_well(record: ExerciseRecord) -> bool:
    """Return whether nothing about the speed needs attention: all points are earned, and the answer is faster."""
    speed = record.speed
    if speed is None or record.points < record.max_points or speed.flags:
        return False
    return speed.verdict is SpeedVerdict.PASS or (speed.verdict is SpeedVerdict.SHOWN and speed.ratio_low > 1)


def kernel_headline(record: KernelRecord) -> str:
    """Return the badge and the share, e.g. `silver, at 79 % of the bandwidth of a copy (95 %: 78 to 80 %)`."""
    if not record.share:
        return "none" if record.assessed else "not assessed here"
    word = record.badge or ("none" if record.assessed else "not decided")
    share, low, high = (f"{100 * each:.0f}" for each in (record.share, record.share_low, record.share_high))
    return f"{word}, at {share} % of the bandwidth of a copy (95 %: {low} to {high} %)"


def kernel_details(record: KernelRecord) -> str:
    """Return the bytes and the times that the share was computed from, or nothing."""
    if not record.share:
        return ""
    times = f"{format_us(record.answer_us)}, a copy of as many bytes {format_us(record.copy_us)}"
    return f"One call has to move {format_bytes(record.bytes_moved)} and takes {times}."


def speed_marks(speed: SpeedRecord) -> dict[str, str]:
    """Return the labels of the marks on the scale, by their names in `speed_places`, from the smallest required on.

    A ratio that earns nothing on any machine has no required ratios.
    """
    asked = {"passing": f"{speed.passing:.3g} passing", "full": f"{speed.full:.3g} full"} if speed.passing else {}
    return {"same": "1 baseline", **asked, "ideal": f"{speed.ideal:.3g} ideal"}


def speed_places(speed: SpeedRecord) -> dict[str, float]:
    """Return where to draw each speed ratio on a scale, from 0 for its left end to 1 for its right end.

    The scale begins 10 % below the smaller of 1 and the interval, and ends at most 5 % beyond twice the ideal ratio.
    Larger ratios are drawn at its end. All marks are positions, so the scale need not begin at 0.
    """
    marks = {
        "same": 1.0,
        "passing": speed.passing,
        "full": speed.full,
        "ideal": speed.ideal,
        "ratio": speed.ratio,
        "low": speed.ratio_low,
        "high": speed.ratio_high,
    }
    start = 0.9 * max(min(1.0, speed.ratio, speed.ratio_low), 0.0)
    end = 1.05 * max(min(max(speed.ratio_high, speed.ratio), 2 * speed.ideal), speed.ideal)
    return {name: min(max((mark - start) / (end - start), 0.0), 1.0) for name, mark in marks.items()}
