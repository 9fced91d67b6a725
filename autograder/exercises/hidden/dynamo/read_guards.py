"""Hidden checks and controls of exercise 07.4."""

from collections.abc import Callable, Mapping
from typing import Any

from autograder.exercises.dynamo.read_guards import Call, Guard, Question, explains
from autograder.exercises.hidden.answer_files import Answers
from autograder.exercises.questions import Known
from autograder.host.exercise import Check, Control, HiddenPart
from autograder.host.kinds.misconceptions import Misconception, wrong_values

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
        Misconception(
            lambda q: truth({**q, "entries": q["entries"][:1]})["opens"] if truth(q)["opens"] else [],
            "The first entry was compared with the call; the newest one stands last.",
        ),
    ),
}


def known(question: Question, part: str) -> Known:
    """Return the right value of one part of the answer, and the known wrong ones."""
    return {"right": truth(question)[part], "wrong": wrong_values(question, MISCONCEPTIONS[part])}


def outcomes(question: Question, entries: int) -> list[bool]:
    """Tell whether the call recompiles, is served after failures, opens a size, and differs under loose equality."""
    right = truth(question)
    served = right["entry"] is not None and len(right["failed"]) >= min(1, entries - 1)
    return [right["entry"] is None, served, bool(right["opens"]), right["entry"] != _loosely_equal(question)]


ANSWERS = Answers(__name__)

HIDDEN = HiddenPart(
    checks=(
        Check("caches of several entries", "several entries", 1, explains("entry", (3, 4, 5), 40)),
        Check("the reason of each entry", "several entries", 1.5, explains("failed", (3, 4, 5), 40)),
        Check("open sizes in larger caches", "open sizes", 1, explains("opens", (2, 3), 60)),
    ),
    controls=(
        ANSWERS.reference(8),
        ANSWERS.edited("compares with the oldest entry", 7, ("question['entries'][-1]", "question['entries'][0]")),
        ANSWERS.edited("True for 1", 6.5, ("type(value) is type(guard['value']) and ", "")),
        Control(
            "always compiles anew",
            "def explain_recompile(question):\n"
            "    return {'entry': None, 'failed': [0] * len(question['entries']), 'opens': []}\n",
            0,
        ),
    ),
)
