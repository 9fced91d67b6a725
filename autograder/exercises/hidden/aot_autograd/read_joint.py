"""Hidden checks and controls of exercise 08.3."""

from autograder.exercises.aot_autograd.read_joint import joint_right
from autograder.exercises.hidden.answer_files import Answers
from autograder.host.exercise import Check, HiddenPart

LARGE = [(20, 20), (30, 12), (12, 30), (25, 25)]

ANSWERS = Answers(__name__)

HIDDEN = HiddenPart(
    checks=(
        Check("large graphs: what is saved", "large graphs", 0.8, joint_right("saved", LARGE)),
        Check("large graphs: bytes", "large graphs", 0.4, joint_right("bytes", LARGE)),
        Check("large graphs: readers", "large graphs", 0.4, joint_right("why", LARGE)),
        Check("large graphs: computed again", "large graphs", 0.8, joint_right("again", LARGE)),
    ),
    controls=(ANSWERS.reference(6),),
)
