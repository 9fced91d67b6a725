"""Hidden checks and controls of exercise 08.3."""

from collections.abc import Mapping, Sequence
from typing import Any

from autograder.exercises.aot_autograd.read_joint import POINTWISE, Row, joint_right
from autograder.exercises.hidden.answer_files import Answers
from autograder.exercises.questions import Known
from autograder.host.exercise import Check, HiddenPart
from autograder.host.kinds.misconceptions import Misconception, wrong_values

LARGE = [(20, 20), (30, 12), (12, 30), (25, 25)]


def _saved(rows: Sequence[Row]) -> list[str]:
    read = {a for r in rows if r["part"] == "backward" for a in r["args"]}
    return [r["name"] for r in rows if r["part"] == "forward" and r["name"] in read]


def truth(rows: Sequence[Row]) -> Mapping[str, Any]:
    """Return the host's own answer."""
    by_name = {r["name"]: r for r in rows}
    saved = _saved(rows)
    return {
        "saved": saved,
        "bytes": sum(by_name[n]["bytes"] for n in saved),
        "why": {n: next(r["name"] for r in rows if r["part"] == "backward" and n in r["args"]) for n in saved},
        "again": [n for n in saved if _cheap(by_name, n, saved)],
    }


def _cheap(by_name: dict[str, Row], name: str, saved: Sequence[str]) -> bool:
    """Return whether one pointwise operator computes a value from values that backward has anyway."""
    row = by_name[name]
    there = [n for n in saved if n != name] + [n for n, r in by_name.items() if r["op"] == "input"]
    return row["op"] in POINTWISE and all(a in there for a in row["args"])


def _without_inputs(part: str) -> Misconception:
    """Return the known mistake about one part of the answer that no input is counted as saved."""
    says = "Inputs were left out: a primal that backward reads is kept alive as well."

    def wrong(rows: Sequence[Row]) -> Any:
        right = truth(rows)
        if part == "bytes":
            inputs = {r["name"]: r["bytes"] for r in rows if r["op"] == "input"}
            return right["bytes"] - sum(inputs.get(n, 0) for n in right["saved"])
        if part == "why":
            return {n: reader for n, reader in right["why"].items() if not n.startswith("primals")}
        return [n for n in right["saved"] if not n.startswith("primals")]

    return Misconception(wrong, says)


MISCONCEPTIONS = {
    "saved": (
        _without_inputs("saved"),
        Misconception(
            lambda rows: [r["name"] for r in rows if r["part"] == "forward" and r["op"] != "input"],
            "All of forward was listed; only what a node of backward reads is kept.",
        ),
    ),
    "bytes": (
        _without_inputs("bytes"),
        Misconception(
            lambda rows: sum(
                r["bytes"] * sum(s["args"].count(r["name"]) for s in rows if s["part"] == "backward")
                for r in rows
                if r["part"] == "forward"
            ),
            "Each reading was counted; a value that is read twice is kept once.",
        ),
    ),
    "why": (
        _without_inputs("why"),
        Misconception(
            lambda rows: {
                n: [r["name"] for r in rows if r["part"] == "backward" and n in r["args"]][-1] for n in _saved(rows)
            },
            "The last reader was named; the first one in the order of the rows is asked for.",
        ),
    ),
    "again": (
        Misconception(
            lambda rows: [n for n in _saved(rows) if next(r["op"] for r in rows if r["name"] == n) in POINTWISE],
            "All pointwise values were listed; what they are computed from has to be there in backward, too.",
        ),
        Misconception(
            lambda rows: [
                n
                for n in _saved(rows)
                if all(a in _saved(rows) for a in next(r["args"] for r in rows if r["name"] == n))
            ],
            "Products, sums or random masks were listed, or inputs of the graph forgotten: those are always there.",
        ),
    ),
}


def known(rows: Sequence[Row], part: str) -> Known:
    """Return the right value of one part of the answer, and the known wrong ones."""
    return {"right": truth(rows)[part], "wrong": wrong_values(rows, MISCONCEPTIONS[part])}


def tells(rows: Sequence[Row], part: str) -> bool:
    """Tell whether every known mistake about a part gives a wrong answer."""
    right, wrong = truth(rows)[part], wrong_values(rows, MISCONCEPTIONS[part])
    return all(value != right for value, _ in wrong)


ANSWERS = Answers(__name__)

HIDDEN = HiddenPart(
    checks=(
        Check("large graphs: what is saved", "large graphs", 1, joint_right("saved", LARGE)),
        Check("large graphs: bytes", "large graphs", 0.5, joint_right("bytes", LARGE)),
        Check("large graphs: readers", "large graphs", 0.5, joint_right("why", LARGE)),
        Check("large graphs: computed again", "large graphs", 0.5, joint_right("again", LARGE)),
    ),
    controls=(ANSWERS.reference(6),),
)
