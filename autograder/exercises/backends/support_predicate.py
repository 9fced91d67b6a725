"""Exercise 10.2: say of a node whether a target takes it, and if not, by which rule."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from autograder.exercises.questions import Question, kept
from autograder.host.draw import Draw
from autograder.host.exercise import Check, CheckFailedError, Exercise, Kind
from autograder.host.kinds.differences import contrasted, same
from autograder.host.kinds.misconceptions import named_mistake
from autograder.host.kinds.value import ValueAnswer
from autograder.host.point_shares import share_among

Target = Question  # what a target takes
Node = Question
Change = Callable[[Draw, Target, Node], None]
FLOATS = ("float32", "float64", "bfloat16", "float16")
OTHERS = ("int64", "int32", "bool", "complex64")
BINARY = ("add", "sub", "mul", "div", "maximum", "atan2")
UNARY = ("exp", "relu", "tanh", "neg", "erf", "floor")
OPTIONS = {"add": "alpha", "sub": "alpha", "div": "rounding_mode"}
VALUES: Mapping[str, tuple[Any, ...]] = {"alpha": (1, 2, 0.5), "rounding_mode": (None, "floor", "trunc")}

truth = kept(__name__, "truth")


def taken(draw: Draw) -> tuple[Target, Node]:
    """Return a target, and a node that it takes: one to three operators, one dtype, ranks up to the limit."""
    names = draw.sample(BINARY, 3) + draw.sample(UNARY, 2)
    operators: Question = {name: {"dtypes": draw.sample(FLOATS, 2), "only": _only(name)} for name in names}
    rank, op = draw.integer(1, 4), draw.choice(names)
    dtype, count = draw.choice(operators[op]["dtypes"]), 2 if op in BINARY else 1
    ranks = [rank, *(draw.integer(0, rank) for _ in range(count - 1))]
    inputs = [{"dtype": dtype, "rank": each} for each in draw.sample(ranks, count)]
    node = {"op": op, "inputs": inputs, "result": {"dtype": dtype, "rank": rank}, "arguments": _only(op)}
    return {"operators": operators, "rank": rank + draw.integer(1, 2)}, node


def _only(name: str) -> Question:
    return {OPTIONS[name]: VALUES[OPTIONS[name]][0]} if name in OPTIONS else {}


def other_operator(draw: Draw, target: Target, node: Node) -> None:
    """Make it a node whose operator the target does not have."""
    alike = BINARY if node["op"] in BINARY else UNARY
    node["op"] = draw.choice([name for name in alike if name not in target["operators"]])
    node["arguments"] = _only(node["op"])


def other_dtype(draw: Draw, target: Target, node: Node) -> None:
    """Give all tensors of the node a dtype that another operator of the target may take."""
    dtype = draw.choice([d for d in FLOATS + OTHERS if d not in target["operators"][node["op"]]["dtypes"]])
    for tensor in (*node["inputs"], node["result"]):
        tensor["dtype"] = dtype


def other_dtype_of_the_result(draw: Draw, target: Target, node: Node) -> None:
    """Give only the result a dtype that the operator does not take."""
    node["result"]["dtype"] = draw.choice(OTHERS)


def other_dtype_of_the_last_input(draw: Draw, target: Target, node: Node) -> None:
    """Give only the last input a dtype that the operator does not take."""
    node["inputs"][-1]["dtype"] = draw.choice(OTHERS)


def larger_rank(draw: Draw, target: Target, node: Node) -> None:
    """Give an input and the result one dimension more than the target takes."""
    draw.choice(node["inputs"])["rank"] = node["result"]["rank"] = target["rank"] + 1


def exactly_the_rank(draw: Draw, target: Target, node: Node) -> None:
    """Give the result, and an input, as many dimensions as the target takes: it is taken."""
    draw.choice(node["inputs"])["rank"] = node["result"]["rank"] = target["rank"]


def larger_rank_of_an_input(draw: Draw, target: Target, node: Node) -> None:
    """Give only the last input more dimensions than the target takes, as a reduction does."""
    node["inputs"][-1]["rank"] = target["rank"] + draw.integer(1, 2)


def mixed_dtypes(draw: Draw, target: Target, node: Node) -> None:
    """Make it a node of two tensors of different dtypes, both of which the operator takes."""
    op = draw.choice([name for name in target["operators"] if name in BINARY])
    first, second = target["operators"][op]["dtypes"]
    node["op"], node["arguments"] = op, _only(op)
    node["inputs"] = [{"dtype": dtype, "rank": 1} for dtype in (first, second)]
    node["result"] = {"dtype": first, "rank": 1}


def other_argument(draw: Draw, target: Target, node: Node) -> None:
    """Make it a node with an argument that has another value than the operator takes."""
    _ask_for_another(draw, target, node, draw.choice(tuple(OPTIONS)))


def _ask_for_another(draw: Draw, target: Target, node: Node, op: str) -> None:
    dtype, name = draw.choice(FLOATS), OPTIONS[op]
    target["operators"][op] = {"dtypes": [dtype], "only": _only(op)}
    node["op"], node["arguments"] = op, {name: draw.choice(VALUES[name][1:])}
    node["inputs"] = [{"dtype": dtype, "rank": 1} for _ in range(2)]
    node["result"] = {"dtype": dtype, "rank": 1}


def argument_left_out(draw: Draw, target: Target, node: Node) -> None:
    """Make it a node without the argument of which the operator takes one value only, not None: it is taken."""
    _ask_for_another(
        draw, target, node, draw.choice([op for op, name in OPTIONS.items() if VALUES[name][0] is not None])
    )
    node["arguments"] = {}


def a_number(draw: Draw, target: Target, node: Node) -> None:
    """Make one of two operands a Python number, which has no dtype and no rank."""
    op = draw.choice([name for name in target["operators"] if name in BINARY])
    dtype = draw.choice(target["operators"][op]["dtypes"])
    tensor = {"dtype": dtype, "rank": 1}
    node["op"], node["arguments"] = op, _only(op)
    node["inputs"] = draw.sample([draw.choice((2, 0.5, True)), dict(tensor)], 2)
    node["result"] = tensor


@dataclass(frozen=True)
class Asked:
    """Nodes that are changed, each with one that is not, so that no constant answers for all."""

    changes: tuple[Change, ...]
    times: int = 4


def questions(draw: Draw, asked: Asked) -> list[Question]:
    """Return changed nodes and unchanged ones, in drawn order."""
    found = []
    for change in asked.changes * asked.times:
        for changed in (True, False):
            target, node = taken(draw)
            if changed:
                change(draw, target, node)
            found.append({"target": target, "node": node})
    return draw.sample(found, len(found))


def refuses(*changes: Change, times: int = 4) -> Callable[[ValueAnswer, Draw], None]:
    """Return a check that nodes with these changes, and nodes without, are answered rightly; all or nothing."""

    def require(answer: ValueAnswer, question: Question) -> None:
        found, known = answer.ask(question), truth(question)
        if not same(found, known["right"]):
            node = question["node"]
            why = named_mistake(found, known["wrong"]) or f"refusal gave {contrasted(found, known['right'])}."
            raise CheckFailedError(f"For {node['op']} of {node['inputs']}, result {node['result']}: {why}")

    def run(answer: ValueAnswer, draw: Draw) -> None:
        asked = questions(draw, Asked(changes, times))
        share_among(asked, lambda question: require(answer, question), noun="nodes", together=True)

    return run


EXERCISE = Exercise(
    title="What the target takes",
    kind=Kind.VALUE,
    entry_point="refusal",
    points=8,
    masked=("course_lib.backends",),
    wall_s=20,
    hints=(
        "Six rules in a fixed order; the first that is broken is the answer. Which tensors does each rule look at?",
        "Collect the tensors first: the inputs that are dicts, and the result. A Python number among the inputs is no "
        "tensor.",
        "`node['arguments'].get(name, value) != value` for each name and value of `only`: an argument that is left out "
        "has the value that the target takes.",
    ),
    checks=(
        Check("operators that the target lacks", "operator", 1, refuses(other_operator)),
        Check("dtypes that the operator does not take", "dtype", 1, refuses(other_dtype)),
        Check("more dimensions than the target takes", "rank", 1.5, refuses(larger_rank, exactly_the_rank)),
        Check("arguments, given and left out", "arguments", 2, refuses(other_argument, argument_left_out)),
    ),
)
