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
ROWS, MAGNITUDE, TIMES = "rows, columns = (numbers['alias'] + 1,", "else 0.01", "2 if asked == 'argument' else 1"
LARGE = "10.0 * numbers['write'] if asked == 'write' else 0.01"
ACROSS = "[columns, rows] if transposed else [rows, columns]"


def fixed(shape: str, *, transposed: bool = False, magnitude: float = 1.0, times: int = 1) -> str:
    """Return an answer that gives one input for all operators."""
    return FIXED.format(shape=shape, transposed=transposed, magnitude=magnitude, times=times)


HIDDEN = HiddenPart(
    checks=tuple(
        Check(f"only `{name}`, with larger numbers", name, 1, disproves(shown(name, 21, 60, rounds=3), together=True))
        for name in LIES
    ),
    controls=(
        ANSWERS.reference(10),
        ANSWERS.edited("one row", 10, (ROWS, "rows, columns = (1,")),
        ANSWERS.edited("one row less", 10, (ROWS, "rows, columns = (numbers['alias'] - 1,")),
        ANSWERS.edited("one column less", 10, ("columns += 1", "columns -= 1")),
        ANSWERS.edited("the largest numbers", 10, (LARGE, "1000 if asked == 'write' else 0.001")),
        ANSWERS.edited("ordinary numbers", 10, (MAGNITUDE, "else 1")),
        ANSWERS.edited("many times", 10, (TIMES, "8 if asked == 'argument' else 1")),
        ANSWERS.edited("a tuple of sizes", 10, (ACROSS, "(columns, rows) if transposed else (rows, columns)")),
        ANSWERS.edited("half as many columns more", 10, ("columns += 1", "columns = min(64, columns * 3 // 2)")),
        ANSWERS.file("one change of an honest input", 10),
        ANSWERS.edited("columns that divide", 8, ("columns += 1", "columns += 0")),
        ANSWERS.edited("never transposed", 8, ("asked == 'strides'", "False")),
        ANSWERS.edited("small numbers", 8, ("10.0 * numbers['write']", "0.01")),
        ANSWERS.edited("rows that have to be padded", 8, ("rows = numbers['alias']", "rows += 1")),
        ANSWERS.edited("the default", 8, (TIMES, "1")),
        ANSWERS.edited("every input transposed", 2, ("asked == 'strides'", "True")),
        ANSWERS.edited("sizes of the transposed matrix", 9.5, (ACROSS, "[rows, columns]"), below=True),
        ANSWERS.edited("large numbers in all", 2, (LARGE, "1000")),
        ANSWERS.edited("twice in all", 2, (TIMES, "2")),
        ANSWERS.edited("rows of all", 2, (ROWS, "rows, columns = (numbers['alias'],")),
        ANSWERS.edited("columns of all", 2, ("numbers['shape']", "numbers['shape'] + 1")),
        ANSWERS.edited("sizes too large", 8, ("columns += 1", "columns = 65")),
        ANSWERS.edited("times too large", 8, (TIMES, "9 if asked == 'argument' else 1")),
        ANSWERS.edited("an entry missing", 0, (f"'times': {TIMES}", "")),
        ANSWERS.edited("a list of texts", 0, (ACROSS, "[str(rows), columns]")),
        Control("an ordinary matrix", fixed("4, 8"), 2.5, below=True),
        Control("all lies at once", fixed("61, 60", transposed=True, magnitude=1000.0, times=2), 0),
    ),
    right_here=dict.fromkeys(
        ("zeros", "NaN", "infinite", "enormous tensors", "no elements"), "it spoils tensors, of which there are none"
    ),
    equivalent=dict.fromkeys(
        (
            "rows, columns = (numbers['alias'] + 1, numbers['shape']): 1 -> 2",
            "numbers['alias'] + 1 -> numbers['alias'] - 1",
            "columns += 1: 1 -> 2",
            "columns += 1 -> columns -= 1",
            "0.01 -> 1.01",
            "10.0 -> 11.0",
            "2 -> 3",
        ),
        "another counterexample",
    ),
)
