"""Hidden checks and controls of exercise 04.6."""

from collections.abc import Mapping
from typing import Any

from autograder.exercises.fx_capture.choose_escape import chosen, obstacle
from autograder.exercises.hidden.answer_files import Answers
from autograder.host.draw import Draw
from autograder.host.exercise import Check, HiddenPart

NEEDS = ("a value of a tensor", "the length of a tensor", "the value of an argument")


def anything(draw: Draw) -> list[Mapping[str, Any]]:
    """Return obstacles with every combination of place and need, several times."""
    places = ("module", "function", "forward")
    return [obstacle(draw, where, need, several=s) for where in places for need in NEEDS for s in (False, True)]


def switches(draw: Draw) -> list[Mapping[str, Any]]:
    """Return obstacles with arguments whose only value is False, and with lengths in the forward itself."""
    fixed = {"needs": NEEDS[2], "module": None, "function": None, "argument": "causal", "values": [False]}
    return [fixed, obstacle(draw, "forward", NEEDS[1]), obstacle(draw, "forward", NEEDS[2], several=True)]


ANSWERS = Answers(__name__)

HIDDEN = HiddenPart(
    checks=(
        Check("every place with every need", "any obstacle", 1, chosen(anything)),
        Check("switches that are off, and lengths", "any obstacle", 1, chosen(switches)),
    ),
    controls=(
        ANSWERS.reference(5),
        ANSWERS.edited("freezes whatever it is given", 5, (" and len(obstacle['values']) == 1", ""), below=True),
        ANSWERS.edited("gives up too early", 5, ("if obstacle['argument'] and", "if False and"), below=True),
        ANSWERS.edited("takes False for nothing", 5, ("== 1:", "== 1 and obstacle['values'][0]:"), below=True),
    ),
)
