"""Exercise 04.6: choose the workaround for code that torch.fx cannot trace."""

from collections.abc import Callable, Mapping
from typing import Any

from autograder.host.draw import Draw
from autograder.host.exercise import Check, CheckFailedError, Exercise, Kind
from autograder.host.kinds.differences import same
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


Question = tuple[Obstacle, tuple[Mapping[str, Any], ...]]
"""An obstacle, and the workarounds that are accepted for it."""
WRAP_LEN = {"wrap": "len"}


def _question(needs: str, *accepted: Mapping[str, Any], **given: Any) -> Question:
    return {"needs": needs, "module": None, "function": None, "argument": None, "values": [], **given}, accepted


def closed(draw: Draw, where: str, needs: str, *, several: bool = False) -> Question:
    """Draw what stays one node, a class or a function, and put an obstacle into it."""
    name = draw.choice(MODULES if where == "module" else FUNCTIONS)
    kept = {"leaf" if where == "module" else "wrap": name}
    if needs == LENGTH:  # `fx.wrap("len")` records the length as a node, wherever it is asked for
        return _question(needs, kept, WRAP_LEN, **{where: name})
    if needs != ARGUMENT:
        return _question(needs, kept, **{where: name})
    argument = draw.choice(tuple(ARGUMENTS))
    values = list(ARGUMENTS[argument]) if several else [draw.choice(ARGUMENTS[argument])]
    frozen = [] if several else [{"concrete_args": {argument: values[0]}}]
    return _question(needs, kept, *frozen, **{where: name}, argument=argument, values=values)


def fixed(draw: Draw, argument: str = "", value: Any = None) -> Question:
    """Draw an argument of the model itself that has one value in all calls."""
    argument = argument or draw.choice(tuple(ARGUMENTS))
    value = draw.choice(ARGUMENTS[argument]) if value is None else value
    return _question(ARGUMENT, {"concrete_args": {argument: value}}, argument=argument, values=[value])


def hopeless(draw: Draw, needs: str) -> Question:
    """Draw a line of the model's own forward that torch.fx cannot trace for all calls."""
    if needs != ARGUMENT:
        return _question(needs, {"compile": True})
    argument = draw.choice(tuple(ARGUMENTS))
    return _question(needs, {"compile": True}, argument=argument, values=list(ARGUMENTS[argument]))


VALUE, LENGTH, ARGUMENT = "a value of a tensor", "the length of a tensor", "the value of an argument"
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


def chosen(questions: Callable[[Draw], list[Question]]) -> Callable[[ValueAnswer, Draw], None]:
    """Return a check that the answer chooses right for every obstacle; one mistake loses all points."""

    def run(answer: ValueAnswer, draw: Draw) -> None:
        for asked, accepted in questions(draw):
            found = answer.ask(dict(asked))
            if type(found) is not dict or not any(same(found, dict(right)) for right in accepted):
                where = asked["module"] or asked["function"] or "the model's forward"
                said = explained_value(found, asked, MISCONCEPTIONS)
                raise CheckFailedError(
                    f"A line of {where} needs {asked['needs']}: {found!r} was chosen; expected {accepted[0]!r}. {said}"
                )

    return run


def _closed(draw: Draw) -> list[Question]:
    return [closed(draw, where, draw.choice((VALUE, LENGTH))) for where in ("module", "function") * 3]


def _arguments(draw: Draw) -> list[Question]:
    asked = [drawn for _ in range(3) for drawn in (fixed(draw), hopeless(draw, ARGUMENT))]
    return [*asked, fixed(draw, "causal", False), hopeless(draw, VALUE)]


EXERCISE = Exercise(
    title="Choose an escape",
    kind=Kind.VALUE,
    entry_point="choose_escape",
    points=5,
    wall_s=20,
    hints=(
        "First ask where the line stands: what is a part of its own can stay one node.",
        "Only in the model's own forward does it matter what the line needs.",
        "One value for ever: concrete_args. Several values, or a value of a tensor: no torch.fx.",
    ),
    checks=(
        Check("parts that can stay closed", "wrap and leaf", 1.5, chosen(_closed)),
        Check("arguments of the model itself", "concrete_args", 1.5, chosen(_arguments)),
    ),
)
