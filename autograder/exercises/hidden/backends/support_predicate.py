"""Hidden checks and controls of exercise 10.2."""

import itertools
from collections.abc import Mapping, Sequence
from typing import Any

from autograder.exercises.backends.support_predicate import (
    FLOATS,
    OPTIONS,
    OTHERS,
    VALUES,
    Change,
    Node,
    Target,
    a_number,
    larger_rank_of_an_input,
    mixed_dtypes,
    other_dtype,
    other_dtype_of_the_last_input,
    other_dtype_of_the_result,
    refuses,
)
from autograder.exercises.hidden.answer_files import Answers
from autograder.exercises.questions import Known
from autograder.host.draw import Draw
from autograder.host.exercise import Check, Control, HiddenPart
from autograder.host.kinds.misconceptions import Misconception, wrong_values

RULES = ("operator", "result", "dtype", "mixed", "rank", "argument")
# "mixed" comes first in none: who forgot that rule has lost the points of its own check
PAIRS = [pair for pair in itertools.combinations(RULES, 2) if pair[0] != "mixed"]


def broken(
    question: Mapping[str, Any], *, result: bool = True, inputs: slice = slice(None), more: int = 0
) -> list[str]:
    """Return the rules that a node breaks, in order; the options give wrong analyses of a node."""
    target, node = question["target"], question["node"]
    if node["op"] not in target["operators"]:
        return ["operator"]
    if node["result"] is None:
        return ["result"]
    sheet = target["operators"][node["op"]]
    operands = [each for each in node["inputs"][inputs] if isinstance(each, dict)]
    tensors = [*operands, *([node["result"]] if result else [])]
    holds = {
        "dtype": all(each["dtype"] in sheet["dtypes"] for each in tensors),
        "mixed": len({each["dtype"] for each in operands}) <= 1,
        "rank": all(each["rank"] + more <= target["rank"] for each in tensors),
        "argument": all(node["arguments"].get(name, value) == value for name, value in sheet["only"].items()),
    }
    return [name for name, held in holds.items() if not held]


def _first(rules: Sequence[str]) -> str:
    return rules[0] if rules else ""


KNOWN = (
    Misconception(
        lambda q: _first([r for r in broken(q) if r != "mixed"]),
        "the inputs have different dtypes. The target takes each of them, but no two together.",
    ),
    Misconception(
        lambda q: _first([r for r in broken(q) if r != "argument"]),
        "an argument has another value than the one in `only`.",
    ),
    Misconception(lambda q: _first(broken(q, result=False)), "the result is a tensor of the node, too: look at it."),
    Misconception(lambda q: _first(broken(q, inputs=slice(1))), "only the first input was looked at; look at all."),
    Misconception(
        lambda q: _first(broken(q, inputs=slice(0))), "only the result was looked at; look at the inputs, too."
    ),
    Misconception(
        lambda q: _first(broken(q, more=1)), "the target takes tensors of exactly its rank, too: only more is refused."
    ),
    Misconception(
        lambda q: broken(q)[-1] if broken(q) else "", "several rules are broken; the first one is asked for."
    ),
    Misconception(lambda q: "", "it was taken, but one of the six rules is broken."),
)


def truth(question: Mapping[str, Any]) -> Known:
    """Return the first rule that a node breaks, "" if there is none, and wrong answers with their sentences."""
    right = _first(broken(question))
    wrong = [[value, says] for value, says in wrong_values(question, KNOWN) if value != right]
    return {"right": right, "wrong": wrong}


def _break(draw: Draw, target: Target, node: Node, rule: str) -> None:
    """Break one rule of a node of two inputs, in all of its tensors where that is possible."""
    first, second = node["inputs"]
    match rule:
        case "operator":
            del target["operators"][node["op"]]
        case "result":
            node["result"] = None
        case "dtype":
            dtype = draw.choice(OTHERS)
            for tensor in (first, second, node["result"] or {}):
                tensor["dtype"] = dtype
        case "mixed":
            first["dtype"] = draw.choice([dtype for dtype in FLOATS if dtype != second["dtype"]])
        case "rank":
            for tensor in (first, second, node["result"] or {}):
                tensor["rank"] = target["rank"] + 1
        case "argument":
            name = OPTIONS[node["op"]]
            node["arguments"] = {name: draw.choice(VALUES[name][1:])}


def both(*rules: str) -> Change:
    """Return a change that breaks these rules of one node, the one that is asked for first."""

    def change(draw: Draw, target: Target, node: Node) -> None:
        op, dtype = draw.choice(tuple(OPTIONS)), draw.choice(FLOATS)
        tensor = {"dtype": dtype, "rank": 1}
        target["operators"][op] = {"dtypes": list(FLOATS), "only": {OPTIONS[op]: VALUES[OPTIONS[op]][0]}}
        node |= {"op": op, "inputs": [dict(tensor), dict(tensor)], "result": dict(tensor), "arguments": {}}
        for rule in rules:
            _break(draw, target, node, rule)

    return change


ANSWERS = Answers(__name__)

TENSORS = "[*inputs, node['result']]"
SLIPS: tuple[Any, ...] = (
    ("the result is not looked at", 7.5, (TENSORS, "inputs")),
    ("only the result is looked at", 7, (TENSORS, "[node['result']]")),
    ("the limit is refused, too", 6.5, ("tensor['rank'] > target", "tensor['rank'] >= target")),
    ("mixed dtypes are taken", 7.5, (" > 1:", " > 2:")),
    ("arguments are not looked at", 6, ("return 'argument'", "return ''")),
    ("arguments have to be given", 6, (".get(name, value)", ".get(name)")),
    (
        "numbers are tensors",
        7.5,
        ("if isinstance(value, dict)]", "]"),
        ("[value for", "[value if isinstance(value, dict) else {'dtype': 'number', 'rank': 0} for"),
    ),
    ("True and False", 0, ("return ''", "return True")),
    (
        "argument before rank",
        7.5,
        (
            "return 'rank'",
            "return 'argument' if any(node['arguments'].get(n, v) != v for n, v in sheet['only'].items()) else 'rank'",
        ),
    ),
    (
        "rank before dtype",
        7.5,
        ("return 'dtype'", "return 'rank' if any(t['rank'] > target['rank'] for t in tensors) else 'dtype'"),
    ),
)
"""Likely slips: name, marks, and edits of the reference."""

HIDDEN = HiddenPart(
    checks=(
        Check(
            "one tensor of another dtype",
            "dtype",
            0.5,
            refuses(other_dtype_of_the_result, other_dtype_of_the_last_input),
        ),
        Check("inputs of different dtypes", "mixed dtypes", 0.5, refuses(mixed_dtypes)),
        Check("an input of too many dimensions", "rank", 0.5, refuses(larger_rank_of_an_input)),
        Check("numbers among the inputs", "numbers", 0.5, refuses(a_number, other_dtype)),
        Check(
            "several rules at once",
            "order",
            0.5,
            refuses(*(both(*pair) for pair in PAIRS), times=1),
        ),
    ),
    controls=(
        ANSWERS.reference(8),
        *ANSWERS.styles(8),
        *(ANSWERS.edited(name, marks, *edits) for name, marks, *edits in SLIPS),
        ANSWERS.edited(  # right about several rules at once, where the first input breaks them
            "only the first input",
            7.5,
            ("for value in node['inputs'] if", "for value in node['inputs'][:1] if"),
            below=True,
        ),
        ANSWERS.edited(
            "dtypes of any operator",
            8,
            ("sheet['dtypes']", "[d for s in target['operators'].values() for d in s['dtypes']]"),
            below=True,
        ),
        Control("everything is taken", "def refusal(question):\n    return ''\n", 0),
        Control("no operator is there", "def refusal(question):\n    return 'operator'\n", 0),
    ),
    right_here={"text": "the rules are texts already"},
)
