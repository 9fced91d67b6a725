"""A measured speed in words and numbers: the same for the page and the terminal."""

from autograder.host.records import SpeedRecord, SpeedVerdict

VERDICTS = {
    SpeedVerdict.PASS: "fast enough",
    SpeedVerdict.FAIL: "not fast enough",
    SpeedVerdict.INCONCLUSIVE: "too close to call",
    SpeedVerdict.ENVIRONMENT: "not judged, because of the machine",
    SpeedVerdict.SHOWN: "shown, not graded",
}
CONFIDENCE = "95 %"


def headline(speed: SpeedRecord) -> str:
    """Return the ratio with its interval, e.g. `1.48 times as fast as the baseline (95 %: 1.44 to 1.53)`."""
    interval = f"{CONFIDENCE}: {speed.ratio_low:.2f} to {speed.ratio_high:.2f}"
    return f"{speed.ratio:.2f} times as fast as the baseline ({interval})"


def details(speed: SpeedRecord) -> str:
    """Return the times, the number of pairs and the device behind the ratio."""
    pairs = f"{speed.pairs} pairs" + (f" in {speed.attempts} attempts" if speed.attempts > 1 else "")
    return f"{time(speed.answer_us)} a call against {time(speed.baseline_us)}, {pairs}, {speed.device}"


def asked(speed: SpeedRecord) -> str:
    """Return the ratios that earn points, and the ratio that is possible."""
    possible = f"{speed.ideal:g} is what the fewest bytes allow"
    if speed.verdict is SpeedVerdict.SHOWN:
        return possible
    return f"{speed.passing:g} passes, {speed.full:g} earns all, {possible}"


def time(time_us: float) -> str:
    """Return a time with a suitable unit.

    >>> time(41.53), time(1234.0), time(2_500_000.0)
    ('41.5 µs', '1.23 ms', '2.5 s')
    """
    units = ((1e6, "s"), (1e3, "ms"), (0.0, "µs"))
    factor, unit = next(each for each in units if time_us >= each[0])
    return f"{time_us / (factor or 1.0):.3g} {unit}"


def places(speed: SpeedRecord) -> dict[str, float]:
    """Return the marks' places on a line from 0 to 1, which ends a little beyond the largest mark."""
    marks = {
        "same": 1.0,
        "passing": speed.passing,
        "full": speed.full,
        "ideal": speed.ideal,
        "ratio": speed.ratio,
        "low": speed.ratio_low,
        "high": speed.ratio_high,
    }
    end = 1.05 * max(min(max(speed.ratio_high, speed.ratio), 2 * speed.ideal), speed.ideal)
    return {name: min(max(mark, 0.0) / end, 1.0) for name, mark in marks.items()}
