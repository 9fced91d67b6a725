"""Exercise 07.4: read guards, and determine which call recompiles and why."""

from collections.abc import Callable, Mapping
from typing import Any

from autograder.host.draw import Draw
from autograder.host.exercise import Check, CheckFailedError, Exercise, Kind
from autograder.host.kinds.differences import contrasted
from autograder.host.kinds.misconceptions import Misconception, explained_value
from autograder.host.kinds.value import ValueAnswer

Guard = Mapping[str, Any]
Call = Mapping[str, Any]
Question = Mapping[str, Any]

DTYPES = ("float32", "float64", "bfloat16")
COMPARE: dict[str, Callable[[int, int], bool]] = {
    "==": lambda a, b: a == b,
    "!=": lambda a, b: a != b,
    "<=": lambda a, b: a <= b,
    ">=": lambda a, b: a >= b,
}


def holds(guard: Guard, call: Call) -> bool:
    """Return whether one guard holds for a call."""
    if guard["kind"] == "TYPE_MATCH":
        return type(call[guard["name"]]).__name__ == guard["type"]
    if guard["kind"] == "EQUALS_MATCH":
        return type(call[guard["name"]]) is type(guard["value"]) and call[guard["name"]] == guard["value"]
    if guard["kind"] == "SHAPE_ENV":
        return COMPARE[guard["op"]](_size(guard["left"], call), _size(guard["right"], call))
    tensor = call[guard["name"]]
    sizes_fit = len(tensor["size"]) == len(guard["size"]) and all(
        wanted is None or wanted == size for wanted, size in zip(guard["size"], tensor["size"], strict=True)
    )
    return sizes_fit and all(tensor[fact] == guard[fact] for fact in ("dtype", "requires_grad"))


def _size(side: Any, call: Call) -> int:
    if type(side) is int:
        return side
    name, dim = side
    sizes: list[int] = call[name]["size"]
    return sizes[dim] if dim < len(sizes) else -1


def truth(question: Question) -> Mapping[str, Any]:
    """Return the host's own answer."""
    failed: list[int] = []
    for number, guards in enumerate(question["entries"]):
        wrong = [i for i, guard in enumerate(guards) if not holds(guard, question["call"])]
        if not wrong:
            return {"entry": number, "failed": failed, "opens": []}
        failed.append(wrong[0])
    return {"entry": None, "failed": failed, "opens": _opened(question)}


def _opened(question: Question) -> list[list[Any]]:
    """Return the dimensions that differ between the newest entry and a call of the same rank; they become dynamic."""
    opened = []
    for guard in question["entries"][-1]:
        if guard["kind"] == "TENSOR_MATCH":
            sizes = question["call"][guard["name"]]["size"]
            if len(sizes) == len(guard["size"]):
                pairs = zip(guard["size"], sizes, strict=True)
                opened += [[guard["name"], d] for d, (old, new) in enumerate(pairs) if old not in (None, new)]
    return opened


def random_question(draw: Draw, entries: int) -> Question:
    """Return a cache of `entries` entries and a call that matches one of them or almost does."""
    call = _random_call(draw)
    cache = [_guards_of(draw, _changed(draw, call, draw.integer(0, 2))) for _ in range(entries)]
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


def _changed(draw: Draw, call: Call, changes: int) -> Call:
    """Return the call that an entry was compiled for: this call with up to `changes` changes."""
    x, y, made = dict(call["x"]), dict(call["y"]), dict(call)
    for _ in range(changes):
        what = draw.choice(("dtype", "grad", "rank", "x size", "y size", "n", "flag", "kind of n"))
        x["dtype"] = draw.choice(DTYPES) if what == "dtype" else x["dtype"]
        x["requires_grad"] = x["requires_grad"] ^ (what == "grad")
        if what == "rank":
            x["size"] = [*call["x"]["size"], 2]
        if what == "x size":
            x["size"] = [draw.integer(1, 6), *call["x"]["size"][1:]]
        if what == "y size":
            y["size"] = [call["y"]["size"][0], draw.integer(2, 6)]
        made["n"] = draw.integer(0, 3) if what == "n" else bool(made["n"]) if what == "kind of n" else made["n"]
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


def _only_first_entry(question: Question) -> Any:
    first = truth({**question, "entries": question["entries"][:1]})
    return first["entry"]


def _loosely_equal(question: Question) -> Any:
    for number, guards in enumerate(question["entries"]):
        if all(
            question["call"][g["name"]] == g["value"] if g["kind"] == "EQUALS_MATCH" else holds(g, question["call"])
            for g in guards
        ):
            return number
    return None


def _last_failure(question: Question) -> Any:
    found = []
    for guards in question["entries"]:
        wrong = [i for i, guard in enumerate(guards) if not holds(guard, question["call"])]
        if not wrong:
            break
        found.append(wrong[-1])
    return found


MISCONCEPTIONS = {
    "entry": (
        Misconception(_loosely_equal, "True == 1 in Python, but a guard on a value also asks for its type."),
        Misconception(
            _only_first_entry, "Only the first entry was tried; Dynamo goes on to the next before it compiles anew."
        ),
    ),
    "failed": (
        Misconception(_last_failure, "The last guard that fails was named; Dynamo stops at the first one."),
        Misconception(
            lambda q: [
                [i for i, g in enumerate(guards) if not holds(g, q["call"])]
                for guards in q["entries"][: len(truth(q)["failed"])]
            ],
            "All guards that fail were listed; one number an entry is asked for, that of the first.",
        ),
    ),
    "opens": (
        Misconception(
            lambda q: [[g["name"], d] for g in q["entries"][-1] if g["kind"] == "TENSOR_MATCH" for d in range(2)],
            "All dimensions were opened; only those whose size has changed become symbols.",
        ),
    ),
}


def explains(part: str, entries: tuple[int, ...], questions: int) -> Callable[[ValueAnswer, Draw], None]:
    """Return a check of one part of the answer on random caches of the given numbers of `entries`."""

    def run(answer: ValueAnswer, draw: Draw) -> None:
        asked = [random_question(draw, draw.choice(entries)) for _ in range(questions)]
        for question in _with_every_outcome(asked, entries, draw):
            found, expected = answer.ask(question), truth(question)
            if not isinstance(found, dict) or part not in found:
                raise CheckFailedError(
                    f"explain_recompile returned a {type(found).__name__}; "
                    "expected a dict with the keys entry, failed, opens."
                )
            if type(found[part]) is not type(expected[part]) or found[part] != expected[part]:
                why = explained_value(found[part], question, MISCONCEPTIONS[part])
                raise CheckFailedError(
                    f"For a cache of {len(question['entries'])} entries {part} is "
                    f"{contrasted(found[part], expected[part])}. {why}".strip()
                )

    return run


def _with_every_outcome(asked: list[Question], entries: tuple[int, ...], draw: Draw) -> list[Question]:
    """Return these questions and more, so that in one a call recompiles, and in one it makes a size dynamic."""
    wanted = [
        lambda q: truth(q)["entry"] is None,
        lambda q: truth(q)["entry"] is not None and len(truth(q)["failed"]) >= min(1, max(entries) - 1),
        lambda q: bool(truth(q)["opens"]),
        lambda q: truth(q)["entry"] != _loosely_equal(q),
    ]
    for want in wanted:
        more = (random_question(draw, draw.choice(entries)) for _ in range(1000))
        asked.append(next(q for q in more if want(q)))
    return asked


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
        Check("which of one or two entries fits", "one entry", 1.6, explains("entry", (1, 2), 12)),
        Check("the first guard that fails", "reasons", 1.6, explains("failed", (1, 2), 12)),
        Check("which sizes become open", "open sizes", 1.6, explains("opens", (1,), 12)),
    ),
)
