"""Hidden checks and controls of exercise 09.1."""

from autograder.exercises.hidden.answer_files import Answers
from autograder.exercises.inductor.predict_kernels import of_everything, predicts
from autograder.host.exercise import Check, Control, HiddenPart

ANSWERS = Answers(__name__)

HIDDEN = HiddenPart(
    checks=(
        Check("the kernels of long programs", "long programs", 2, predicts("kernels", of_everything)),
        Check("the calls of long programs", "long programs", 1.2, predicts("calls", of_everything)),
    ),
    controls=(
        ANSWERS.reference(8),
        Control("one kernel, always", "def predict_kernels(steps):\n    return {'kernels': 1, 'calls': 1}\n", 0),
        ANSWERS.edited("dead code runs", 8, ("if s != 'unused'", "if s != 'none'"), below=True),
    ),
    equivalent={
        "kernels, calls, waiting, product_last, turned = (0, 0, False, False, False): False -> True": "a product turns "
        "nothing, and without a product it is not asked",
        "waiting or not absorbed -> not absorbed": "after a product, nothing waits",
    },
)
