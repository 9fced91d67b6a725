"""Hidden checks and controls of exercise 09.2."""

from autograder.exercises.hidden.answer_files import Answers
from autograder.exercises.inductor import reach_byte_minimum as visible
from autograder.host.exercise import Check, HiddenPart

OTHERS = {"soften": ((3, 65, 129),), "mix": ((400, 200, 61),), "shares": ((513, 31),), "scores": ((300, 1024),)}

ANSWERS = Answers(__name__)

HIDDEN = HiddenPart(
    checks=tuple(
        Check(f"`{name}` in other shapes", "other shapes", 1.5, visible.at(name, *sizes), speed=name == "shares")
        for name, sizes in OTHERS.items()
    ),
    controls=(ANSWERS.reference(14), ANSWERS.file("as they were", 0)),
    right_here={
        "one precision lower": "the control leaves float16 as it is, so `scores` stays right; the others get nothing"
    },
)
