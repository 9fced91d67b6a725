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
        ANSWERS.edited("a large input", 10, ("[2, n + 1]", "[2, 2 * n - 1]")),
        ANSWERS.edited(
            "a square of one more, transposed",
            10,
            ("given['transposed'] = True", "given.update(transposed=True, shape=[n + 1, n + 1])"),
        ),
        ANSWERS.edited("the largest numbers", 10, ("20.0 * n", "1000")),
        ANSWERS.edited("twice as many rows", 10, ("'shape': [n, n]", "'shape': [2 * n, n]")),
        ANSWERS.edited("many times", 10, ("given['times'] = 2", "given['times'] = 8")),
        ANSWERS.edited("whole numbers", 10, ("'magnitude': 1.0", "'magnitude': 1")),
        ANSWERS.edited("every input transposed", 10, ("'transposed': False", "'transposed': True")),
        ANSWERS.edited("columns that divide", 8, ("[2, n + 1]", "[2, n]")),
        ANSWERS.edited("a column of a row", 8, ("given['transposed'] = True", "given['shape'] = [1, 4]")),
        ANSWERS.edited("small numbers", 8, ("20.0 * n", "0.01")),
        ANSWERS.edited("one more row", 8, ("'shape': [n, n]", "'shape': [n + 1, n]")),
        ANSWERS.edited("the default", 8, ("given['times'] = 2", "given['times'] = 1")),
        ANSWERS.edited(
            "a row, transposed", 10, ("given['transposed'] = True", "given.update(transposed=True, shape=[1, 8])")
        ),
        ANSWERS.edited("numbers around n", 10, ("20.0 * n", "1.0 * n")),
        ANSWERS.edited("one row of all", 8, ("'shape': [n, n]", "'shape': [1, n]")),
        ANSWERS.edited("sizes too large", 8, ("[2, n + 1]", "[2, 65]")),
        ANSWERS.edited("times too large", 8, ("given['times'] = 2", "given['times'] = 9")),
        ANSWERS.edited("an entry missing", 2, ("'magnitude': 1.0, ", "")),
        ANSWERS.edited("a list of texts", 2, ("'shape': [n, n]", "'shape': [str(n), n]")),
        Control("an ordinary matrix", fixed("4, 8"), 2.5, below=True),
    ),
    right_here=dict.fromkeys(
        ("zeros", "NaN", "infinite", "enormous tensors", "no elements"), "it spoils tensors, of which there are none"
    ),
)
