"""Hidden checks and controls of exercise 03.1."""

from autograder.exercises.hidden.answer_files import Answers
from autograder.exercises.torchscript import predict_capture as visible
from autograder.host.exercise import Check, Control, HiddenPart


def _check(group: str, points: float) -> Check:
    asked = visible.questions(group, largest=40, rounds=3)
    return Check(f"{group}, up to forty rows", group, points, visible.predicted(asked))


ANSWERS = Answers(__name__)

HIDDEN = HiddenPart(
    checks=(_check("branches", 1), _check("rows", 1.2), _check("numbers outside torch", 1)),
    controls=(
        ANSWERS.reference(8),
        Control("always agrees", "def predict(question):\n    return 'agrees'\n", 0),
        Control("always fails", "def predict(question):\n    return 'fails'\n", 0),
        ANSWERS.edited(
            "sizes are frozen too",
            5.2,
            ("'divide_by_len': same_rows", "'divide_by_len': same_rows, 'divide_by_rows': same_rows"),
        ),
    ),
    right_here={"text": "an outcome is a text already"},
    equivalent={
        "example['sum'] > 0 -> example['sum'] >= 0": "no question has a sum of 0",
        "later['sum'] > 0 -> later['sum'] >= 0": "no question has a sum of 0",
        "later['rows'] > example['rows'] -> later['rows'] >= example['rows']": "equal rows never come there",
    },
)
