"""The host reads each call of an answer's graph, whatever stands among its arguments: it refuses a graph, or takes it.

Arguments that fit no operator are drawn, for every function and method that a graph may call. An answer's process may
send them without torch.fx; if reading them failed, the grading would be void.
"""

import pytest

import course_lib.kernels  # noqa: F401 - registers operators that a graph may call
from autograder.host.artifacts import ArtifactRefusedError, read_artifact
from autograder.host.draw import Draw
from autograder.protocol import Result
from autograder.protocol.requests.answers import WrittenGraph
from course_lib.graph.data.targets import METHODS, OPERATORS, functions
from tests.drawn import chance

X, Y = {"node": "x"}, {"node": "y"}
VALUES = (
    X,
    X,
    X,
    Y,
    None,
    True,
    False,
    0,
    1,
    -1,
    2**62,
    0.5,
    {"float": "nan"},
    "",
    "inplace",
    [1, X],
    [],
    [[Y]],
    {"tuple": []},
    {"tuple": [1, 0]},
    {"dict": {"a": 1}},
    {"slice": [None, 1, None]},
    {"dtype": "float32"},
    {"ellipsis": True},
)
KEYWORDS = ("out", "inplace", "dim", "dims", "input", "other", "alpha", "p", "training", "dtype", "eps", "tensors")
SEED = chance("calls of any form").getrandbits(32)


def graph_of(op: str, target: str, args: list[object], kwargs: dict[str, object]) -> dict[str, object]:
    def node(name: str, op: str, target: str, args: list[object], **kwargs: object) -> dict[str, object]:
        return {"name": name, "op": op, "target": target, "args": args, "kwargs": kwargs}

    inputs = [node(name, "placeholder", name, []) for name in ("x", "y")]
    called, output = node("called", op, target, args, **kwargs), node("output", "output", "output", [X])
    return {"nodes": [*inputs, called, output], "modules": {}, "tensors": {}}


def read(op: str, target: str, args: list[object], kwargs: dict[str, object]) -> str:
    """Return whether the host takes the graph of one call."""
    try:
        read_artifact(Result(WrittenGraph(graph_of(op, target, args, kwargs), ()), ()), max_nodes=8)
    except ArtifactRefusedError:
        return "refused"
    return "taken"


@pytest.mark.filterwarnings("ignore:.*perhaps you missed a comma:SyntaxWarning")
def test_a_call_of_any_form_is_taken_or_refused():
    draw = Draw(SEED, "any form")
    calls = [("call_function", name, []) for name in sorted(functions())]
    calls += [("call_method", name, [X]) for name in sorted(METHODS)]
    for op, target, first in calls:
        some = [draw.choice(VALUES) for _ in range(draw.integer(0, 4))]
        named = {draw.choice(KEYWORDS): draw.choice(VALUES) for _ in range(draw.integer(0, 2))}
        library, _, short = target.rpartition(".")
        if library == "operator":
            some, named = some[: OPERATORS.get(short, 2)], {}
        read(op, target, [*first, *some], named)


@pytest.mark.parametrize("target", ["torch.ops.aten.mT.default", "torch.permute", "torch.ops.aten.permute.default"])
@pytest.mark.parametrize("args", [[], [1.0], [1.0, [1, 0]]])
def test_a_transpose_of_no_tensor_is_no_transpose(target, args):
    assert read("call_function", target, args, {}) == "taken"  # it fails where it runs
