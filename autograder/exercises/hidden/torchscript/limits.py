"""Hidden checks and controls of exercise 03.6."""

from autograder.exercises.hidden.answer_files import Answers
from autograder.exercises.torchscript import limits as visible
from autograder.host.exercise import Check, Control, HiddenPart

ANSWERS = Answers(__name__)

HIDDEN = HiddenPart(
    checks=(
        Check("traces without a warning", "silence", 0.8, visible.told_apart("silent traces")),
        Check("everything together", "everything", 0.8, visible.told_apart(*visible.SNIPPETS)),
    ),
    controls=(
        ANSWERS.reference(4),
        ANSWERS.edited(
            "silence is gold",
            2.4,
            ("'frozen mode'", "'none'"),
            ("'lost effect' if seen['calls_seen'] == 0 else ", ""),
        ),
        Control("always none", "def which_limit(seen):\n    return 'none'\n", 0),
    ),
    right_here={"text": "a name is a text already"},
)
