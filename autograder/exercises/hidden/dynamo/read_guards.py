"""Hidden checks and controls of exercise 07.4."""

from autograder.exercises.dynamo.read_guards import explains
from autograder.exercises.hidden.answer_files import Answers
from autograder.host.exercise import Check, Control, HiddenPart

ANSWERS = Answers(__name__)

HIDDEN = HiddenPart(
    checks=(
        Check("caches of several entries", "several entries", 1.2, explains("entry", (3, 4, 5), 40)),
        Check("the reason of each entry", "several entries", 1.2, explains("failed", (3, 4, 5), 40)),
        Check("open sizes in larger caches", "open sizes", 0.8, explains("opens", (2, 3), 60)),
    ),
    controls=(
        ANSWERS.reference(8),
        Control(
            "always compiles anew",
            "def explain_recompile(question):\n"
            "    return {'entry': None, 'failed': [0] * len(question['entries']), 'opens': []}\n",
            0,
        ),
    ),
)
