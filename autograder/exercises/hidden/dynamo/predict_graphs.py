"""Hidden checks and controls of exercise 07.1."""

from autograder.exercises.dynamo.predict_graphs import long, predicts, with_loops
from autograder.exercises.hidden.answer_files import Answers
from autograder.host.exercise import Check, Control, HiddenPart

ANSWERS = Answers(__name__)

HIDDEN = HiddenPart(
    checks=(
        Check("long programs", "long programs", 1.2, predicts("sizes", long)),
        Check("loops, with and without a break", "loops", 1, predicts("graphs", with_loops)),
        Check("the graphs in programs with loops", "loops", 1, predicts("sizes", with_loops)),
    ),
    controls=(
        ANSWERS.reference(8),
        Control("one graph, always", "def count_graphs(steps):\n    return {'graphs': 1, 'sizes': [len(steps)]}\n", 0),
        ANSWERS.edited("no loops", 6, ("if do == 'repeat' and", "if do == 'jump' and")),
    ),
)
