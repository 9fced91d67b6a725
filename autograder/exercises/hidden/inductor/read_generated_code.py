"""Hidden checks and controls of exercise 09.3."""

from autograder.exercises.hidden.answer_files import Answers
from autograder.exercises.inductor.read_generated_code import long, reads_right
from autograder.host.exercise import Check, Control, HiddenPart

ANSWERS = Answers(__name__)

HIDDEN = HiddenPart(
    checks=(
        Check("long kernels: pointers and masks", "long kernels", 1.8, reads_right(["reads", "masked"], long)),
        Check("long kernels: the rest", "long kernels", 1.4, reads_right(["sizes", "functions", "reductions"], long)),
    ),
    controls=(
        ANSWERS.reference(8),
        Control("no block", "def read_code(text):\n    return []\n", 0),
        Control(
            "one block",
            "def read_code(text):\n    return [{'sizes': [], 'reads': ['in_ptr0'], 'writes': ['out_ptr0'], "
            "'functions': [], 'reductions': ['sum'], 'masked': []}]\n",
            0,
        ),
        ANSWERS.edited("starts are updates", 8, ("'^ *tmp_acc", "' tmp_acc"), below=True),
    ),
)
