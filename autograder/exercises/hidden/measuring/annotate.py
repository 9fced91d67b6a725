"""Hidden checks and controls of exercise 02.5."""

from autograder.exercises.hidden.answer_files import Answers
from autograder.exercises.measuring import annotate as visible
from autograder.host.draw import Draw
from autograder.host.exercise import Check, Control, HiddenPart


def _catching(draw: Draw) -> list[visible.Part]:
    return [visible.program(draw, depth, failing=True, catching=True) for depth in (2, 3, 4, 4)]


def _deep(draw: Draw) -> list[visible.Part]:
    return [visible.program(draw, depth, failing=fails) for depth in (5, 6) for fails in (False, True)]


ANSWERS = Answers(__name__)

HIDDEN = HiddenPart(
    checks=(
        Check("behaviour stays the same where a part catches", "behaviour", 1.6, visible.logs(_catching, "behaviour")),
        Check("deep programs", "deep nesting", 0.8, visible.logs(_deep, "deep nesting")),
    ),
    controls=(
        ANSWERS.reference(6),
        ANSWERS.edited("ranges stay open", 4.4, ("finally:", "except KeyError:\n            pass\n        else:")),
        ANSWERS.edited("ranges swallow failures", 4.4, ("if not part['catches']:\n                raise", "pass")),
        Control(
            "operations alone",
            "def run_with_ranges(program):\n    return [i for i in program['body'] if i == str(i)]\n",
            0,
        ),
    ),
)
