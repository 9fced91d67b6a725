"""Exercise 07.4: read guards, and determine which call recompiles and why."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from autograder.exercises.questions import kept
from autograder.host.draw import Draw
from autograder.host.exercise import Check, CheckFailedError, Exercise, Kind
from autograder.host.kinds.differences import contrasted, same
from autograder.host.kinds.misconceptions import named_mistake
from autograder.host.kinds.value import ValueAnswer

Guard = Mapping[str, Any]
Call = Mapping[str, Any]
Question = Mapping[str, Any]

DTYPES = ("float32", "float64", "bfloat16")

known = kept(__name__, "known")
outcomes = kept(__name__, "outcomes")


CHANGES = ("dtype", "grad", "rank", "x size", "y size", "n", "flag")
KIND = "kind of n"  # a number becomes True or False, to which Python finds it equal


def random_question(draw: Draw, entries: int, changes: Sequence[str]) -> Question:
    """Return a cache of `entries` entries and a call that matches one of them, but for up to two of `changes`."""
    call = _random_call(draw)
    cache = [
        _guards_of(draw, _changed(draw, call, [draw.choice(changes) for _ in range(draw.integer(0, 2))]))
        for _ in range(entries)
    ]
    return {"entries": cache, "call": call}


def _random_call(draw: Draw) -> Call:
    size = [draw.integer(1, 6), draw.integer(2, 5)]
    other = size if draw.chance(0.5) else [draw.integer(1, 6), size[1]]
    return {
        "x": {"dtype": draw.choice(DTYPES), "requires_grad": draw.chance(0.5), "size": list(size)},
        "y": {"dtype": "float32", "requires_grad": False, "size": list(other)},
        "n": draw.integer(0, 3),
        "flag": draw.chance(0.5),
    }


def _changed(draw: Draw, call: Call, changes: Sequence[str]) -> Call:
    """Return the call that an entry was compiled for: this call with some of `CHANGES`."""
    x, y, made = dict(call["x"]), dict(call["y"]), dict(call)
    for what in changes:
        x["dtype"] = draw.choice(DTYPES) if what == "dtype" else x["dtype"]
        x["requires_grad"] = x["requires_grad"] ^ (what == "grad")
        if what == "rank":
            x["size"] = [*call["x"]["size"], 2]
        if what == "x size":
            x["size"] = [draw.integer(1, 6), *call["x"]["size"][1:]]
        if what == "y size":
            y["size"] = [call["y"]["size"][0], draw.integer(2, 6)]
        made["n"] = draw.integer(0, 3) if what == "n" else bool(made["n"]) if what == KIND else made["n"]
        made["flag"] = made["flag"] ^ (what == "flag")
    return {**made, "x": x, "y": y}


def _guards_of(draw: Draw, call: Call) -> list[Guard]:
    """Return guards that Dynamo could create for a call, with some dynamic sizes."""
    guards: list[Guard] = []
    relations: list[Guard] = []
    for name in ("x", "y"):
        size: list[Any] = list(call[name]["size"])
        if draw.chance(0.6) and size[0] >= 2:
            size[0] = None
            relations.append({"kind": "SHAPE_ENV", "left": [name, 0], "op": ">=", "right": 2})
        facts = {"dtype": call[name]["dtype"], "requires_grad": call[name]["requires_grad"]}
        guards.append({"kind": "TENSOR_MATCH", "name": name, **facts, "size": size})
    same = call["x"]["size"][0] == call["y"]["size"][0]
    relations.append({"kind": "SHAPE_ENV", "left": ["x", 0], "op": "==" if same else "!=", "right": ["y", 0]})
    guards.append({"kind": "EQUALS_MATCH", "name": "n", "value": call["n"]})
    guards.append({"kind": "TYPE_MATCH", "name": "flag", "type": type(call["flag"]).__name__})
    guards.append({"kind": "EQUALS_MATCH", "name": "flag", "value": call["flag"]})
    return [*draw.sample(guards, len(guards)), *relations]


def explains(
    part: str, entries: tuple[int, ...], questions: int, *, kinds: bool = False
) -> Callable[[ValueAnswer, Draw], None]:
    """Return a check of one part of the answer on random caches of the given numbers of `entries`.

    With `kinds`, some values differ from a guard's in their type alone. One check asks that: an answer that takes True
    for 1 loses the points of this check, and no others.
    """

    def run(answer: ValueAnswer, draw: Draw) -> None:
        for question in _with_every_outcome(draw, entries, questions, (*CHANGES, KIND) if kinds else CHANGES):
            found, about = answer.ask(question), known(question, part)
            if not isinstance(found, dict) or part not in found:
                raise CheckFailedError(
                    f"explain_recompile returned a {type(found).__name__}; "
                    "expected a dict with the keys entry, failed, opens."
                )
            if not same(found[part], about["right"]):
                why = named_mistake(found[part], about["wrong"])
                raise CheckFailedError(
                    f"For a cache of {len(question['entries'])} entries {part} is "
                    f"{contrasted(found[part], about['right'])}. {why}".strip()
                )

    return run


def _with_every_outcome(draw: Draw, entries: tuple[int, ...], questions: int, changes: Sequence[str]) -> list[Question]:
    """Return questions, and some more, so that in one a call recompiles, and in one it makes a size dynamic."""
    drawn = [random_question(draw, draw.choice(entries), changes) for _ in range(questions)]
    for number in range(4 if KIND in changes else 3):
        more = (random_question(draw, draw.choice(entries), changes) for _ in range(1000))
        drawn.append(next(q for q in more if outcomes(q, max(entries))[number]))
    return drawn


EXERCISE = Exercise(
    title="Read guards",
    kind=Kind.VALUE,
    entry_point="explain_recompile",
    points=8,
    hints=(
        "A guard is one question about the call; write a function that answers one guard first.",
        "Go through the entries in order. Find the first guard of each that fails, and stop at an entry without one.",
        "A size None in TENSOR_MATCH fits every size; the number of sizes has to fit all the same.",
    ),
    checks=(
        Check("which of one or two entries fits", "one entry", 1.5, explains("entry", (1, 2), 12, kinds=True)),
        Check("the first guard that fails", "reasons", 1.5, explains("failed", (1, 2), 12)),
        Check("which sizes become open", "open sizes", 1.5, explains("opens", (1,), 12)),
    ),
)
