"""Exercise 11.4: a `CustomGraphPass` whose `uuid()` tells passes apart that rewrite differently, and no others."""

from collections.abc import Callable, Sequence
from typing import Any

from autograder.exercises.questions import kept
from autograder.host.draw import Draw
from autograder.host.exercise import Check, CheckFailedError, Exercise, Kind
from autograder.host.kinds.differences import contrasted
from autograder.host.kinds.value import ValueAnswer

Options = dict[str, Any]
expected_graph = kept(__name__, "expected_graph")
OPERATORS = ("relu", "tanh", "sin", "exp", "abs", "neg")
SAID = {
    "None": "uuid() returned None: Inductor then leaves its cache aside for every program.",
    "''": "uuid() returned an empty text; put what the pass does into it.",
}


def options(draw: Draw, **more: Any) -> Options:
    """Return options of a pass that bounds two of the operators, and the steps of a program that has all of them."""
    chosen = draw.sample(OPERATORS, 2)
    return {"operators": chosen, "limit": draw.integer(4, 64) / 4, "verbose": False, "steps": list(OPERATORS), **more}


def bounds(answer: ValueAnswer, draw: Draw) -> None:
    """Require the right graph for random options; the check of the pass itself."""
    for _ in range(3):
        asked = options(draw)
        asked["steps"] = [draw.choice(OPERATORS) for _ in range(6)]
        found, right = _part(answer, asked, "graph"), expected_graph(asked)
        if found != right:
            raise CheckFailedError(
                f"For operators {', '.join(asked['operators'])} and limit {asked['limit']} the graph calls "
                f"{contrasted(found, right)} on the way to its output. Does the next call read the clamp?"
            )


Pair = tuple[str, Options, Options]


def tells(
    equal: Callable[[Draw, Options], Sequence[Pair]], different: Callable[[Draw, Options], Sequence[Pair]]
) -> Callable[[ValueAnswer, Draw], None]:
    """Return a check that pairs of `equal` have one uuid each, and pairs of `different` have two.

    The first item of a pair completes "Two passes ...".
    """

    def run(answer: ValueAnswer, draw: Draw) -> None:
        bounds(answer, draw)  # a name for a pass that does nothing is worth nothing
        for same, pairs in ((True, equal), (False, different)):
            for what, one, other in pairs(draw, options(draw)):
                names = [_name(answer, each) for each in (one, other)]
                if message := next((SAID[name] for name in names if name in SAID), ""):
                    raise CheckFailedError(message)
                if (names[0] == names[1]) is not same:
                    raise CheckFailedError(f"Two passes {what}; uuid() {_CONSEQUENCE[same]}")

    return run


_CONSEQUENCE = {
    True: "differs between them, so the second compiles again although its result is in the cache. Leave out of the "
    "name what does not change the graph, and whatever belongs to one object, such as id(self).",
    False: "is the same for both, so the second gets from the cache what the first made. Put everything into the name "
    "that changes the graph.",
}


def _part(answer: ValueAnswer, asked: Options, key: str) -> Any:
    found = answer.ask(asked, key)
    if not isinstance(found, dict) or key not in found:
        raise CheckFailedError(f"`describe` returned no entry {key!r}; leave it as it was given.")
    return found[key]


def _name(answer: ValueAnswer, asked: Options) -> str:
    found = _part(answer, asked, "uuid")
    if not isinstance(found, str):
        raise CheckFailedError(
            f"`describe` returned {type(found).__name__} for 'uuid', where repr(made.uuid()), a text, is expected; "
            "leave the line with `return` as it was given."
        )
    return found


def alike(draw: Draw, first: Options) -> list[Pair]:
    """Return two passes with equal options."""
    return [("with equal options do the same", first, dict(first))]


def other_limit(draw: Draw, first: Options) -> list[Pair]:
    """Return passes whose limits differ, one of them by little."""
    return [
        ("with different limits do different things", first, {**first, "limit": first["limit"] + more})
        for more in (1.0, 2**-20)
    ]


EXERCISE = Exercise(
    title="Name a pass",
    kind=Kind.VALUE,
    entry_point="describe",
    points=8,
    hints=(
        "What does the graph depend on: the options, or also the object, the time, the order of a set?",
        "Write into one text all that changes the graph, and nothing else. Two lists with the same operators in "
        "another order bound the same calls.",
        'For example `f"BoundPass 1 {sorted(operators)} {limit!r}"`, or its sha256 in hex. The number is a '
        "version of `__call__`: raise it with each change.",
    ),
    checks=(
        Check("the pass bounds the operators", "pass", 2.0, bounds),
        Check("equal options, and other limits", "limits", 2.5, tells(alike, other_limit)),
    ),
)
