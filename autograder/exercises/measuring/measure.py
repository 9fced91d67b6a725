"""Exercise 02.2: measure two programs on a machine whose speed varies.

The host calls the answer twice: for the order of the runs, and, with the times of that order, for a report. The host
chooses programs and noise, so the ratio is right only if the noise affects both programs equally.
"""

import platform
import statistics
from collections.abc import Callable, Mapping
from importlib import metadata
from typing import Any

from autograder.host.draw import Draw
from autograder.host.exercise import Check, CheckFailedError, Exercise, Kind
from autograder.host.kinds.differences import contrasted
from autograder.host.kinds.value import ValueAnswer
from autograder.host.session import AnswerFailedError
from course_lib.timing import NoisyMachine

NAMES = ("eager", "fused", "compiled", "tiled", "streamed", "packed")
SAMPLES = 500  # so many that any random order is good enough, also one that shuffles the whole list
EXACT = 1e-6  # relative; a median is one number, or the middle of two
ABOVE_1 = "Above 1 means that the second is faster: divide the first by the second."
KEYS = ("median_us", "spread_us", "n", "ratio", "environment")

Noise = Callable[[Draw], dict[str, float]]


def order_from(answer: ValueAnswer, programs: list[str], samples: int) -> list[str]:
    """Get an order from the answer and check that it runs each program `samples` times."""
    found = answer.ask({"programs": programs, "samples": samples})
    if not isinstance(found, list) or not all(name in programs for name in found):
        raise CheckFailedError(
            f"Asked for an order, measure returned {found!r:.80}; expected a list of the names {programs}."
        )
    counts = {name: found.count(name) for name in programs}
    if set(counts.values()) != {samples}:
        raise CheckFailedError(f"The order runs them {counts} times; each is to be run {samples} times.")
    return found


def report_from(answer: ValueAnswer, programs: list[str], times: list[list[Any]], *keys: str) -> Mapping[str, Any]:
    """Get these entries of a report on the given times from the answer, and check that they are there."""
    found = answer.ask({"programs": programs, "times": times}, *keys)
    if not isinstance(found, dict) or not set(keys) <= set(found):
        raise CheckFailedError(f"The report is {found!r:.80}; expected a dict with the keys {', '.join(KEYS)}.")
    return found


def _programs(draw: Draw) -> list[str]:
    return draw.sample(NAMES, 2)


def gives_turns(answer: ValueAnswer, draw: Draw) -> None:
    """Check only the order, for random names and numbers."""
    for _ in range(3):
        order_from(answer, _programs(draw), draw.integer(5, 30))


def _uneven_times(draw: Draw, programs: list[str]) -> list[list[Any]]:
    """Return times with different numbers of samples and some outliers; the times of one program may be constant."""
    first, second = programs
    times: list[list[Any]] = [[first, draw.integer(900, 1100) / 10] for _ in range(draw.integer(5, 12))]
    times += [[first, float(draw.integer(400, 900))] for _ in range(2)]
    steady = draw.integer(300, 600) / 10
    times += [[second, steady] for _ in range(draw.integer(4, 9))]
    return draw.sample(times, len(times))


def summarises(answer: ValueAnswer, draw: Draw) -> None:
    """Check that median, spread and n are those of the given times."""
    for _ in range(4):
        programs = _programs(draw)
        times = _uneven_times(draw, programs)
        report = report_from(answer, programs, times, "median_us", "spread_us", "n")
        for name in programs:
            mine = [us for program, us in times if program == name]
            _require_number(report, "n", name, len(mine), {})
            median = statistics.median(mine)
            _require_number(report, "median_us", name, median, _other_middles(mine))
            off = [abs(us - median) for us in mine]
            _require_number(report, "spread_us", name, statistics.median(off), _other_spreads(mine))


def _other_middles(times: list[float]) -> dict[float, str]:
    return {
        statistics.fmean(times): "That is the mean, which one interrupted sample carries away.",
        min(times): "That is the smallest, which says nothing of how the others lie.",
    }


def _other_spreads(times: list[float]) -> dict[float, str]:
    mean = statistics.fmean(times)
    said = {
        statistics.stdev(times): "That is the standard deviation, which squares what is far off.",
        statistics.pstdev(times): "That is the standard deviation, which squares what is far off.",
        max(times) - min(times): "That is the range, which two samples decide alone.",
        statistics.fmean([abs(t - mean) for t in times]): "That is a mean of distances; take their median.",
    }
    return {value: sentence for value, sentence in said.items() if value}


def _require_number(report: Mapping[str, Any], key: str, name: str, expected: float, wrong: dict[float, str]) -> None:
    found: Any = report[key].get(name) if isinstance(report[key], dict) else None
    if not _is_number(found) or abs(found - expected) > EXACT * max(abs(expected), 1e-3):
        says = next((s for v, s in wrong.items() if _is_number(found) and abs(found - v) <= EXACT * abs(v)), "")
        raise CheckFailedError(f"{key}[{name!r}] is {contrasted(found, expected)}. {says}".rstrip())


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def says_where(answer: ValueAnswer, draw: Draw) -> None:
    """Check that the report contains the environment of the machine on which the answer ran."""
    programs = _programs(draw)
    times = [[name, float(draw.integer(50, 90))] for name in programs]
    try:
        found = report_from(answer, programs, times, "environment")["environment"]
    except AnswerFailedError as error:
        if error.fatal or "Environment" not in error.message:
            raise
        raise CheckFailedError(f"{error.message} Call its method `to_json()`.") from None
    expected = {"python": platform.python_version(), "torch": metadata.version("torch")}
    if not isinstance(found, dict) or any(found.get(key) != version for key, version in expected.items()):
        raise CheckFailedError(f"environment is {found!r:.80}; expected environment().to_json() of course_lib.timing.")


def quiet(draw: Draw) -> dict[str, float]:
    """Return noise that consists only of jitter."""
    return {}


def slowing(draw: Draw) -> dict[str, float]:
    """Return the noise of a machine that slows down as it gets hot."""
    return {"drift": draw.integer(50, 70) / 100}


def right_ratio(
    noise: Noise, tolerance: float, says: str, *, formula: bool = False
) -> Callable[[ValueAnswer, Draw], None]:
    """Return a check that the ratio of three pairs of programs is right within `tolerance` under this noise.

    It judges the order. Only with `formula` the report's own ratio has to be that of the medians; elsewhere a ratio of
    other numbers of the same times, which another check counts, costs nothing.
    """

    def run(answer: ValueAnswer, draw: Draw) -> None:
        for _ in range(3):
            programs = _programs(draw)
            first_us, true = float(draw.integer(80, 300)), draw.integer(120, 250) / 100
            costs = {programs[0]: first_us, programs[1]: first_us / true}
            machine = NoisyMachine(costs, seed=draw.integer(0, 2**40), **noise(draw))  # type: ignore[arg-type]
            order = order_from(answer, programs, SAMPLES)
            times = [[name, us] for name, us in zip(order, machine.run(order), strict=True)]
            report = report_from(answer, programs, times, "ratio", *(["median_us"] if formula else []))
            found = report["ratio"]
            if formula:
                _require_ratio_of_medians(report, programs, times)
            elif _is_number(found) and _is_of_these_times(found, programs, times):
                found = _ratio(statistics.median, programs, times)
            if not _is_number(found) or abs(found - true) > tolerance * true:
                raise CheckFailedError(_told(found, true, tolerance, programs, says))

    return run


def _require_ratio_of_medians(report: Mapping[str, Any], programs: list[str], times: list[list[Any]]) -> None:
    """Check that the ratio is that of the medians, or of the report's own: wrong medians are counted by their check."""
    found, right = report["ratio"], _ratio(statistics.median, programs, times)
    own: list[Any] = (
        [report["median_us"].get(name) for name in programs] if isinstance(report["median_us"], dict) else []
    )
    every = [us for _, us in times]
    if len(own) == 2 and all(_is_number(middle) and min(every) <= middle <= max(every) for middle in own):
        right = own[0] / own[1]
    if not _is_number(found) or abs(found / right - 1) > EXACT:
        inverted = _is_number(found) and abs(found * right - 1) <= EXACT
        said = ABOVE_1 if inverted else "The ratio is the median of the first over the median of the second."
        raise CheckFailedError(f"Of the times given, ratio is {contrasted(found, right)}. {said}")


def _ratio(middle: Callable[[list[float]], float], programs: list[str], times: list[list[Any]]) -> float:
    first, second = (middle([us for name, us in times if name == program]) for program in programs)
    return first / second


def _is_of_these_times(found: float, programs: list[str], times: list[list[Any]]) -> bool:
    """Tell whether a number is a ratio, either way up, that a known mistake makes of the times."""
    ratios = [_ratio(middle, programs, times) for middle in (statistics.median, statistics.fmean, min, max)]
    return any(abs(found / r - 1) <= EXACT or abs(found * r - 1) <= EXACT for r in ratios)


def _told(found: Any, true: float, tolerance: float, programs: list[str], says: str) -> str:
    if _is_number(found) and abs(found * true - 1) <= tolerance:
        says = f"It is upside down. {ABOVE_1}"
    elif not _is_number(found) or abs(found / true - 1) > 0.6:
        says = "The ratio is the median of the first over the median of the second."
    return f"{programs[1]} is {true:.2f} times as fast as {programs[0]}; ratio is {found!r:.20}. {says}"


EXERCISE = Exercise(
    title="Measure two programs",
    kind=Kind.VALUE,
    entry_point="measure",
    points=10,
    wall_s=20,
    hints=(
        "There are two kinds of request; look which key tells them apart. For the order ask yourself: if the machine "
        "gets slower all the time, which of the two programs pays for it?",
        "Build the order from pairs: each pair holds both programs once. For the report, first collect the times of "
        "each program in a dict of lists.",
        "`random.sample(programs, 2)` is one pair with its order left to chance. The spread is the median of "
        "`abs(t - median)` over the times of one program.",
    ),
    checks=(
        Check("the order gives each program its turns", "order", 1, gives_turns),
        Check("median, spread and n are those of the times", "summary", 1.5, summarises),
        Check("the environment stands beside the numbers", "environment", 0.5, says_where),
        Check("the ratio on a quiet machine", "quiet machine", 1, right_ratio(quiet, 0.03, "", formula=True)),
        Check(
            "the ratio on a machine that gets slower",
            "drift",
            2,
            right_ratio(
                slowing, 0.08, "The machine gets slower while you measure; run the two in turns, so that both pay."
            ),
        ),
    ),
)
