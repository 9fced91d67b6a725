"""Hidden checks and controls of exercise 00.1."""

from autograder.exercises.hidden.answer_files import Answers
from autograder.exercises.start_here import doctor as visible
from autograder.host.draw import Draw
from autograder.host.exercise import Check, Control, HiddenPart


def _unknown(draw: Draw) -> list[list[str]]:
    """Return lists of names in which some or all findings do not exist."""
    unknown = [f"{draw.choice(('colour', 'size', 'mood'))}_{draw.integer(1, 99)}" for _ in range(3)]
    return [[*draw.sample(visible.NAMES, draw.integer(3, 6)), unknown[0]], unknown[1:], draw.sample(visible.NAMES, 4)]


def _many(draw: Draw) -> list[list[str]]:
    """Return every name, and lists of all names but a few."""
    return [draw.sample(visible.NAMES, len(visible.NAMES) - left_out) for left_out in (0, 2, 3)]


ANSWERS = Answers(__name__)

HIDDEN = HiddenPart(
    checks=(
        Check("a name that the doctor does not know", "unknown names", 0.5, visible.reports(_unknown)),
        Check("every name at once, and nearly every name", "several findings", 0.5, visible.reports(_many)),
    ),
    controls=(
        ANSWERS.reference(2),
        Control("another machine", "def ask_doctor(names):\n    return dict.fromkeys(names, '3.11.99')\n", 0),
    ),
)
