"""Exercise 04.6: choose the workaround for code that torch.fx cannot trace."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from autograder.exercises.questions import Question, kept
from autograder.host.draw import Draw
from autograder.host.exercise import Check, CheckFailedError, Exercise, Kind
from autograder.host.kinds.differences import contrasted, same
from autograder.host.kinds.misconceptions import named_mistake
from autograder.host.kinds.value import ValueAnswer

Obstacle = Mapping[str, Any]
"""What stops torch.fx: {"needs": "a value of a tensor" | "the length of a tensor" | "the value of an argument",
"module": class name or None, "function": function name or None, "argument": name or None, "values": list}.

`module` or `function` contains the line, if it is not in the model's own forward; `values` are all values of the
argument in all calls.
"""

VALUE, LENGTH, ARGUMENT = "a value of a tensor", "the length of a tensor", "the value of an argument"
NEEDS = (VALUE, LENGTH, ARGUMENT)
PLACES = ("module", "function")

CLASSES = (
    ("Soft", "Top", "Sparse", "Gated", "Rotary", "Shared", "Masked", "Local", "Packed", "Noisy", "Cross", "Early"),
    ("Clip", "Router", "Gate", "Pool", "Norm", "Exit", "Cache", "Expert", "Merge", "Window", "Sampler", "Scale"),
)
FUNCTIONS = (
    ("rescale", "pad", "choose", "count", "sort", "drop", "split", "mask", "shift", "merge", "check", "pick"),
    ("rows", "heads", "tokens", "scores", "blocks", "experts", "pairs", "groups", "labels", "windows", "keys", "steps"),
)
SWITCHES = ("causal", "training", "packed", "return_scores", "use_cache", "bidirectional", "need_weights", "norm_first")
NUMBERS = ("steps", "heads", "window", "groups", "depth", "keep", "stride", "repeats")
MODES = ("mode", "kind", "norm", "act", "padding", "reduction", "layout", "backend")
MODE_VALUES = ("fast", "exact", "none", "mean", "sum", "left", "right", "tanh", "relu", "rms", "layer", "auto", "flash")

known = kept(__name__, "known")


def arguments(draw: Draw, count: int) -> tuple[str, list[Any]]:
    """Draw the name of an argument, and `count` different values for it; a switch has at most two."""
    kind = draw.choice((SWITCHES, NUMBERS, MODES) if count < 3 else (NUMBERS, MODES))
    options: Sequence[Any] = {SWITCHES: (True, False), NUMBERS: range(65), MODES: MODE_VALUES}[kind]
    return draw.choice(kind), draw.sample(options, count)


def obstacle(draw: Draw, needs: str, where: str = "", *, count: int = 0) -> Obstacle:
    """Draw an obstacle in a "module", in a "function", or, if `where` is empty, in the model's own forward.

    An argument that is needed takes `count` different values.
    """
    drawn: Question = {"needs": needs, "module": None, "function": None, "argument": None, "values": []}
    if where:
        first, second = CLASSES if where == "module" else FUNCTIONS
        drawn[where] = draw.choice(first) + ("" if where == "module" else "_") + draw.choice(second)
    if needs == ARGUMENT:
        drawn["argument"], drawn["values"] = arguments(draw, count)
    return drawn


def chosen(obstacles: Callable[[Draw], list[Obstacle]]) -> Callable[[ValueAnswer, Draw], None]:
    """Return a check that the answer chooses right for every obstacle; one mistake loses all points."""

    def run(answer: ValueAnswer, draw: Draw) -> None:
        for asked in obstacles(draw):
            found, about = answer.ask(dict(asked)), known(asked)
            if type(found) is not dict or not any(same(found, right) for right in about["right"]):
                where = asked["module"] or asked["function"] or "the model's forward"
                said = named_mistake(found, about["wrong"])
                raise CheckFailedError(
                    f"A line of {where} needs {asked['needs']}: "
                    f"{contrasted(found, about['right'][0], between=' was chosen; expected ')}. {said}".rstrip()
                )

    return run


def _parts(draw: Draw) -> list[Obstacle]:
    return [obstacle(draw, needs, where) for needs in (VALUE, LENGTH, VALUE) for where in PLACES]


def _own_forward(draw: Draw) -> list[Obstacle]:
    asked = [obstacle(draw, ARGUMENT, count=count) for count in (1, 2, 1, draw.integer(2, 4), 1, 2)]
    asked.append({**obstacle(draw, ARGUMENT, count=1), "argument": draw.choice(SWITCHES), "values": [False]})
    return [*draw.sample(asked, len(asked)), obstacle(draw, VALUE)]


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
        Check("parts that can stay closed", "wrap and leaf", 1.5, chosen(_parts)),
        Check("arguments of the model itself", "concrete_args", 1.5, chosen(_own_forward)),
    ),
)
