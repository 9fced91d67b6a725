"""Hidden checks and controls of exercise 07.5."""

from autograder.exercises.dynamo.capture_backend import broken, by_name, collects, recompiled, whole
from autograder.exercises.hidden.answer_files import Answers
from autograder.host.exercise import Check, Control, HiddenPart

ANSWERS = Answers(__name__)

HIDDEN = HiddenPart(
    checks=(
        Check("inputs by name", "inputs by name", 1, collects(by_name)),
        Check("one program after the other, and again", "no leftovers", 2, collects(whole, broken, again=True)),
        Check("several calls, some compiled anew", "several calls", 1, collects(recompiled, shapes=True)),
    ),
    equivalent={"torch._dynamo.reset() -> pass": "Dynamo asks a backend that is new, whatever another one made"},
    controls=(
        ANSWERS.reference(9),
        ANSWERS.file("kept when the graph runs", 8),
        Control(
            "no graphs", "def collect(function, calls):\n    return [2 * function(*a, **k) for a, k in calls], []\n", 0
        ),
        ANSWERS.edited("graphs as they are", 0, ("2 * each for each", "each for each")),
        ANSWERS.file("traced, not captured", 1),
        ANSWERS.edited(
            "graphs of all time",
            9,
            ("def collect", "graphs = []\n\ndef collect"),
            ("    graphs = []\n", ""),
            below=True,
        ),
    ),
)
