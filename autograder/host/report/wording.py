"""The words, marks and numbers of every report, so that reports use one name for each thing."""

from autograder.host.records import CheckRecord, CheckStatus, ExerciseRecord, ExerciseStatus
from autograder.host.report.hidden_checks import HiddenCategory

CHECK_MARKS = {
    CheckStatus.PASSED: "✓",
    CheckStatus.FAILED: "✗",
    CheckStatus.ERROR: "!",
    CheckStatus.NOT_ASSESSED: "–",
}

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
    ExerciseStatus.GRADER_ERROR: "not graded: an error of ours",
}


SHORT_WORDS = {
    ExerciseStatus.GRADED: "",
    ExerciseStatus.STUDENT_ERROR: "raised an error",
    ExerciseStatus.TIMED_OUT: "time limit",
    ExerciseStatus.OUT_OF_MEMORY: "memory limit",
    ExerciseStatus.KILLED: "process ended",
    ExerciseStatus.MALFORMED_ANSWER: "unreadable answer",
    ExerciseStatus.NOT_FOUND: "not answered",
    ExerciseStatus.GRADER_ERROR: "an error of ours",
}


def check_words(status: CheckStatus, exercise: ExerciseStatus) -> str:
    """Return a check's mark and word; while the exercise is not answered, its checks are open, not failed."""
    if exercise is ExerciseStatus.NOT_FOUND:
        return "○ open"
    return f"{CHECK_MARKS[status]} {CHECK_WORDS[status]}"


_UNITS = {"us": "µs", "ms": "ms", "s": "s", "bytes": "bytes", "percent": "%"}


def number(value: float) -> str:
    """Return a number as people write it.

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
    """Return `part` of `whole` in percent, rounded down so that only everything is 100; 0 of nothing is 0."""
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
    """Return points of a check out of its points; a dash where it was not assessed, which costs nothing."""
    return "–" if check.status is CheckStatus.NOT_ASSESSED else marks(check.points, check.max_points)


def with_minimum(counted: dict[str, float]) -> tuple[list[tuple[str, float, float]], list[tuple[str, float]]]:
    """Split quantities into those that come with their `…_minimum` and the rest, in their order.

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


def status_word(record: ExerciseRecord) -> str:
    """Return in two or three words why the exercise was not graded; empty if it was."""
    return SHORT_WORDS[record.status]
