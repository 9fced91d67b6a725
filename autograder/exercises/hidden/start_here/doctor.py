"""Hidden checks and controls of exercise 00.1."""

from autograder.exercises.hidden.answer_files import Answers
from autograder.exercises.start_here import doctor as visible
from autograder.host.draw import Draw
from autograder.host.exercise import Check, Control, HiddenPart


def _unknown(draw: Draw) -> list[list[str]]:
    """Return lists of names in which some or all findings do not exist."""
    return [[*draw.sample(visible.NAMES, 2), f"colour_{draw.integer(1, 99)}"], draw.sample(visible.NAMES, 1)]


def _all(draw: Draw) -> list[list[str]]:
    return [draw.sample(visible.NAMES, len(visible.NAMES))]


ANSWERS = Answers(__name__)

HIDDEN = HiddenPart(
    checks=(
        Check("a name that the doctor does not know", "unknown names", 0.5, visible.reports(_unknown)),
        Check("every name at once", "several findings", 0.5, visible.reports(_all)),
    ),
    controls=(
        ANSWERS.reference(2),
        Control("another machine", "def ask_doctor(names):\n    return dict.fromkeys(names, '3.11.99')\n", 0),
    ),
)
