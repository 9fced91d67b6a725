"""Hidden checks and controls of exercise 02.2."""

from autograder.exercises.hidden.answer_files import Answers
from autograder.exercises.measuring import measure as visible
from autograder.host.draw import Draw
from autograder.host.exercise import Check, HiddenPart


def _drift_and_bursts(draw: Draw) -> dict[str, float]:
    return {"drift": draw.choice((-0.35, 0.5)), "bursts": 0.03}


def _rhythm(draw: Draw) -> dict[str, float]:
    return {"rhythm": 0.5, "phase": draw.integer(0, 3)}


ANSWERS = Answers(__name__)
PAIRS = "[name for _ in range(request['samples']) for name in random.sample(programs, 2)]"
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
        ANSWERS.reference(10),
        ANSWERS.edited("in blocks", 6, (PAIRS, "[name for name in programs for _ in range(request['samples'])]")),
        ANSWERS.edited(
            "a ratio of means",
            9,
            (
                "medians[programs[0]] / medians[programs[1]]",
                "statistics.fmean(times[programs[0]]) / statistics.fmean(times[programs[1]])",
            ),
        ),
        ANSWERS.edited("the environment as an object", 9.5, ("environment().to_json()", "environment()")),
        ANSWERS.edited(
            "medians whose ratio is 0",
            8.5,
            ("'median_us': medians", "'median_us': dict(zip(programs, (5e-324, 10.0)))"),
        ),
        ANSWERS.edited("strictly in turns", 8, (PAIRS, "programs * request['samples']")),
    ),
)
