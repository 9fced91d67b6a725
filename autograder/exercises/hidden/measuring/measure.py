"""Hidden checks and controls of exercise 02.2."""

from __future__ import annotations

from autograder.exercises.measuring import measure as visible
from autograder.host.draw import Draw
from autograder.host.exercise import Check, Control, HiddenPart


def _drift_and_bursts(draw: Draw) -> dict[str, float]:
    return {"drift": draw.choice((-0.35, 0.5)), "bursts": 0.03}


def _rhythm(draw: Draw) -> dict[str, float]:
    return {"rhythm": 0.5, "phase": draw.integer(0, 3)}


REFERENCE = """
def measure(request):
    first, second = request["programs"]
    if "times" not in request:
        pairs = [random.sample([first, second], 2) for _ in range(request["samples"])]
        return [name for pair in pairs for name in pair]
    times = {name: [us for program, us in request["times"] if program == name] for name in (first, second)}
    medians = {name: statistics.median(mine) for name, mine in times.items()}
    return {
        "median_us": medians,
        "spread_us": {name: statistics.median(abs(us - medians[name]) for us in times[name]) for name in times},
        "n": {name: len(mine) for name, mine in times.items()},
        "ratio": medians[first] / medians[second],
        "environment": environment().to_json(),
    }
"""
_PAIRS = """        pairs = [random.sample([first, second], 2) for _ in range(request["samples"])]
        return [name for pair in pairs for name in pair]
"""
IN_BLOCKS = REFERENCE.replace(_PAIRS, '        return [first] * request["samples"] + [second] * request["samples"]\n')
ALTERNATING = REFERENCE.replace(_PAIRS, '        return [first, second] * request["samples"]\n')

HIDDEN = HiddenPart(
    checks=(
        Check(
            "the ratio with drift either way and interruptions",
            "drift and interruptions",
            2,
            visible.right_ratio(_drift_and_bursts, 0.12, "The machine changes its pace while you measure."),
        ),
        Check(
            "the ratio with a slow sample at regular times",
            "rhythm",
            2,
            visible.right_ratio(_rhythm, 0.06, "An order that repeats itself can fall into step with the machine."),
        ),
    ),
    controls=(
        Control("reference", REFERENCE, 10),
        Control("in blocks", IN_BLOCKS, 6.4),
        Control("strictly in turns", ALTERNATING, 8),
    ),
)
