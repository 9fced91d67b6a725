"""Exercise 04.6: choose the workaround for code that torch.fx cannot trace."""

from collections.abc import Callable, Mapping
from typing import Any

from autograder.host.draw import Draw
from autograder.host.exercise import Check, CheckFailedError, Exercise, Kind
from autograder.host.kinds.misconceptions import Misconception, explained_value
from autograder.host.kinds.value import ValueAnswer

Obstacle = Mapping[str, Any]
"""What stops torch.fx: {"needs": "a value of a tensor" | "the length of a tensor" | "the value of an argument",
"module": class name or None, "function": function name or None, "argument": name or None, "values": list}.

`module` or `function` contains the line, if it is not in the model's own forward; `values` are all values of the
argument in all calls.
"""

MODULES = ("Clip", "Router", "Gate", "TopK")
FUNCTIONS = ("rescale", "pad_rows", "choose", "count_rows")
ARGUMENTS: dict[str, tuple[Any, ...]] = {"mode": ("fast", "exact"), "steps": (1, 2, 3), "causal": (True, False)}


def escape(obstacle: Obstacle) -> Mapping[str, Any]:
    """Return the smallest workaround with which the graph is right for every call."""
    if obstacle["module"]:
        return {"leaf": obstacle["module"]}
    if obstacle["function"]:
        return {"wrap": obstacle["function"]}
    if obstacle["argument"] and len(obstacle["values"]) == 1:
        return {"concrete_args": {obstacle["argument"]: obstacle["values"][0]}}
    return {"compile": True}


def obstacle(draw: Draw, where: str, needs: str, *, several: bool = False) -> Obstacle:
    """Return an obstacle in a module, a function or the forward; an argument has one value, or `several`."""
    name = draw.choice(tuple(ARGUMENTS))
    by_argument = needs == "the value of an argument"
    values = list(ARGUMENTS[name]) if several else [draw.choice(ARGUMENTS[name])]
    return {
        "needs": needs,
        "module": draw.choice(MODULES) if where == "module" else None,
        "function": draw.choice(FUNCTIONS) if where == "function" else None,
        "argument": name if by_argument else None,
        "values": values if by_argument else [],
    }


MISCONCEPTIONS = (
    Misconception(
        lambda o: {"concrete_args": {o["argument"]: o["values"][0]}},
        "concrete_args freezes one branch: where the argument takes several values, all others would be wrong.",
    ),
    Misconception(
        lambda o: {"compile": True},
        "That gives up torch.fx; a part that stays one node, or an argument that never changes, is a smaller step.",
    ),
)


def chosen(obstacles: Callable[[Draw], list[Obstacle]]) -> Callable[[ValueAnswer, Draw], None]:
    """Return a check that the answer chooses right for every obstacle; one mistake loses all points."""

    def run(answer: ValueAnswer, draw: Draw) -> None:
        for each in obstacles(draw):
            found, expected = answer.ask(each), escape(each)
            if found != expected or type(found) is not dict:
                where = each["module"] or each["function"] or "the model's forward"
                said = explained_value(found, each, MISCONCEPTIONS)
                raise CheckFailedError(
                    f"A line of {where} needs {each['needs']}: {found!r} was chosen; expected {expected!r}. {said}"
                )

    return run


def _closed(draw: Draw) -> list[Obstacle]:
    needs = ("a value of a tensor", "the length of a tensor")
    return [obstacle(draw, where, draw.choice(needs)) for where in ("module", "function") * 3]


def _arguments(draw: Draw) -> list[Obstacle]:
    need = "the value of an argument"
    asked = [obstacle(draw, "forward", need, several=several) for several in (False, True) * 3]
    return [*asked, obstacle(draw, "forward", "a value of a tensor")]


EXERCISE = Exercise(
    title="Choose an escape",
    kind=Kind.VALUE,
    entry_point="choose_escape",
    points=5,
    wall_s=20,
    hints=(
        "First ask where the line stands: what is a box of its own can stay closed.",
        "Only in the model's own forward does it matter what the line needs.",
        "One value for ever: concrete_args. Several values, or a value of a tensor: no torch.fx.",
    ),
    checks=(
        Check("parts that can stay closed", "wrap and leaf", 1.6, chosen(_closed)),
        Check("arguments of the model itself", "concrete_args", 1.4, chosen(_arguments)),
    ),
)
