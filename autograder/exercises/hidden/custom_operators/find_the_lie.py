"""Hidden checks and controls of exercise 11.1."""

from autograder.exercises.custom_operators.find_the_lie import LIES, shown
from autograder.exercises.hidden.answer_files import Answers
from autograder.host.exercise import Check, Control, HiddenPart
from autograder.host.kinds.counterexample import disproves

ANSWERS = Answers(__name__)
FIXED = (
    "def input_that_shows(question):\n"
    "    return {{'shape': [{shape}], 'transposed': {transposed}, 'magnitude': {magnitude}, 'times': {times}}}\n"
)


def fixed(shape: str, *, transposed: bool = False, magnitude: float = 1.0, times: int = 1) -> str:
    """Return an answer that gives one input for all operators."""
    return FIXED.format(shape=shape, transposed=transposed, magnitude=magnitude, times=times)


HIDDEN = HiddenPart(
    checks=tuple(
        Check(f"`{name}` with other numbers", name, 0.8, disproves(shown(name, 6, 30, rounds=3), together=True))
        for name in LIES
    ),
    controls=(
        ANSWERS.reference(10),
        Control("an ordinary matrix", fixed("4, 8"), 2.5, below=True),
    ),
    right_here=dict.fromkeys(
        ("zeros", "NaN", "infinite", "enormous tensors", "no elements"), "it spoils tensors, of which there are none"
    ),
)
