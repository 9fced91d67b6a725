"""Hidden checks and controls of exercise 04.6."""

from typing import Any, TypedDict

from autograder.exercises.fx_capture.choose_escape import (
    ARGUMENT,
    LENGTH,
    MODES,
    NEEDS,
    NUMBERS,
    PLACES,
    SWITCHES,
    VALUE,
    Obstacle,
    chosen,
    obstacle,
)
from autograder.exercises.hidden.answer_files import Answers
from autograder.exercises.questions import Question
from autograder.host.draw import Draw
from autograder.host.exercise import Check, HiddenPart
from autograder.host.kinds.misconceptions import Misconception, wrong_values

Escape = Question
MISCONCEPTIONS = (
    Misconception(
        lambda o: {"concrete_args": {o["argument"]: o["values"][0]}} if len(o["values"]) > 1 else None,
        "concrete_args freezes one branch: where the argument takes several values, all others would be wrong.",
    ),
    Misconception(
        lambda o: {"compile": True},
        "That gives up torch.fx; a part that stays one node, or an argument that never changes, is a smaller step.",
    ),
    Misconception(
        lambda o: {"leaf": o["module"] or o["function"]},
        "A leaf is a module, by the name of its class; a function that stays one node is wrapped.",
    ),
    Misconception(
        lambda o: {"wrap": o["function"] or o["module"]},
        "A function is wrapped, by its name; a module that stays one node is a leaf, by the name of its class.",
    ),
)


class Escapes(TypedDict):
    """What is known about an obstacle."""

    right: list[Escape]  # the expected escape first
    wrong: list[list[Any]]


def known(asked: Obstacle) -> Escapes:
    """Return the escapes that are accepted for an obstacle, and the known wrong ones."""
    return {"right": accepted(asked), "wrong": wrong_values(asked, MISCONCEPTIONS)}


def accepted(asked: Obstacle) -> list[Escape]:
    """Return the smallest escapes after which the graph is right for every call."""
    frozen: list[Escape] = []
    if len(asked["values"]) == 1:
        frozen = [{"concrete_args": {asked["argument"]: asked["values"][0]}}]
    if not asked["module"] and not asked["function"]:
        return frozen or [{"compile": True}]
    part: Escape = {"leaf": asked["module"]} if asked["module"] else {"wrap": asked["function"]}
    # `fx.wrap("len")` records the length as a node, wherever it is asked for
    return [part, *frozen, *([{"wrap": "len"}] if asked["needs"] == LENGTH else [])]


def anything(draw: Draw) -> list[Obstacle]:
    """Return obstacles with every combination of place and need, several times."""
    asked = [obstacle(draw, needs, where, count=count) for where in PLACES for needs in NEEDS for count in (1, 2, 3)]
    asked += [obstacle(draw, ARGUMENT, count=count) for count in (1, 1, 2, 4)]
    return draw.sample([*asked, obstacle(draw, VALUE)], len(asked) + 1)


def nothings(draw: Draw) -> list[Obstacle]:
    """Return obstacles with an argument whose only value is False, 0 or an empty text, among others."""
    drawn = [
        {**obstacle(draw, ARGUMENT, count=1), "argument": draw.choice(names), "values": [value]}
        for names, value in ((SWITCHES, False), (NUMBERS, 0), (MODES, ""))
    ]
    asked = [*drawn, *(obstacle(draw, ARGUMENT, count=2) for _ in range(2)), obstacle(draw, LENGTH, "function")]
    return draw.sample(asked, len(asked))


ANSWERS = Answers(__name__)
WRAPS_LEN = "    if 'length' in obstacle['needs']:\n        return {'wrap': 'len'}\n"

HIDDEN = HiddenPart(
    checks=(
        Check("every place with every need", "any obstacle", 1, chosen(anything)),
        Check("switches that are off, and other values that are nothing", "any obstacle", 1, chosen(nothings)),
    ),
    controls=(
        ANSWERS.reference(5),
        ANSWERS.edited("wraps len", 5, ("    if obstacle['module']:", f"{WRAPS_LEN}    if obstacle['module']:")),
        ANSWERS.edited("freezes whatever it is given", 1.5, (" and len(obstacle['values']) == 1", "")),
        ANSWERS.edited("gives up too early", 1.5, ("if obstacle['argument'] and", "if False and")),
        ANSWERS.edited("takes False for nothing", 5, ("== 1:", "== 1 and obstacle['values'][0]:"), below=True),
    ),
)
