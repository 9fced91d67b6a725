"""Hidden checks and controls of exercise 04.6."""

from autograder.exercises.fx_capture.choose_escape import (
    ARGUMENT,
    LENGTH,
    VALUE,
    Question,
    chosen,
    closed,
    fixed,
    hopeless,
)
from autograder.exercises.hidden.answer_files import Answers
from autograder.host.draw import Draw
from autograder.host.exercise import Check, HiddenPart


def anything(draw: Draw) -> list[Question]:
    """Return obstacles with every combination of place and need, several times."""
    asked = [
        closed(draw, where, need, several=several)
        for where in ("module", "function")
        for need in (VALUE, LENGTH, ARGUMENT)
        for several in (False, True)
    ]
    return [*asked, fixed(draw), hopeless(draw, ARGUMENT), hopeless(draw, VALUE)]


def switches(draw: Draw) -> list[Question]:
    """Return obstacles with an argument whose only value is False, among others."""
    return [fixed(draw, "causal", False), hopeless(draw, ARGUMENT), closed(draw, "function", LENGTH)]


ANSWERS = Answers(__name__)
WRAPS_LEN = "    if 'length' in obstacle['needs']:\n        return {'wrap': 'len'}\n"

HIDDEN = HiddenPart(
    checks=(
        Check("every place with every need", "any obstacle", 1, chosen(anything)),
        Check("switches that are off", "any obstacle", 1, chosen(switches)),
    ),
    controls=(
        ANSWERS.reference(5),
        ANSWERS.edited("wraps len", 5, ("    if obstacle['module']:", f"{WRAPS_LEN}    if obstacle['module']:")),
        ANSWERS.edited("freezes whatever it is given", 5, (" and len(obstacle['values']) == 1", ""), below=True),
        ANSWERS.edited("gives up too early", 5, ("if obstacle['argument'] and", "if False and"), below=True),
        ANSWERS.edited("takes False for nothing", 5, ("== 1:", "== 1 and obstacle['values'][0]:"), below=True),
    ),
)
