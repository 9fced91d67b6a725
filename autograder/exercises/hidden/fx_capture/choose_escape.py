"""Hidden checks and controls of exercise 04.6."""

from __future__ import annotations

from typing import Any

from autograder.exercises.fx_capture import choose_escape as visible
from autograder.host.draw import Draw
from autograder.host.exercise import Check, Control, HiddenPart

obstacle, chosen = visible.obstacle, visible.chosen

NEEDS = ("a value of a tensor", "the length of a tensor", "the value of an argument")


def anything(draw: Draw) -> list[dict[str, Any]]:
    """Every place with every need, several times."""
    places = ("module", "function", "forward")
    return [obstacle(draw, where, need, several=s) for where in places for need in NEEDS for s in (False, True)]


def switches(draw: Draw) -> list[dict[str, Any]]:
    """Arguments whose one value is False, and lengths in the forward itself."""
    fixed = {"needs": NEEDS[2], "module": None, "function": None, "argument": "causal", "values": [False]}
    return [fixed, obstacle(draw, "forward", NEEDS[1]), obstacle(draw, "forward", NEEDS[2], several=True)]


REFERENCE = """
def choose_escape(obstacle):
    if obstacle["module"]:
        return {"leaf": obstacle["module"]}
    if obstacle["function"]:
        return {"wrap": obstacle["function"]}
    if obstacle["argument"] and len(obstacle["values"]) == 1:
        return {"concrete_args": {obstacle["argument"]: obstacle["values"][0]}}
    return {"compile": True}
"""
FREEZES = REFERENCE.replace(' and len(obstacle["values"]) == 1', "")
GIVES_UP = REFERENCE.replace('if obstacle["argument"]', "if False and obstacle")
FALSE_IS_NOTHING = REFERENCE.replace(
    'len(obstacle["values"]) == 1', 'len(obstacle["values"]) == 1 and obstacle["values"][0]'
)

HIDDEN = HiddenPart(
    checks=(
        Check("every place with every need", "any obstacle", 1, chosen(anything)),
        Check("switches that are off, and lengths", "any obstacle", 1, chosen(switches)),
    ),
    controls=(
        Control("reference", REFERENCE, 5),
        Control("freezes whatever it is given", FREEZES, 5, below=True),
        Control("gives up too early", GIVES_UP, 5, below=True),
        Control("takes False for nothing", FALSE_IS_NOTHING, 5, below=True),
    ),
)
