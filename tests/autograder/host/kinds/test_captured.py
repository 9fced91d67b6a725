"""What is captured crosses as a graph, and only a graph that is right for fresh inputs earns something."""

from dataclasses import replace

import pytest
import torch
from torch.nn import functional as F

from autograder.host.exercise import Check, CheckFailedError, Exercise, Kind
from autograder.host.judge import judge
from autograder.host.kinds.callable import Case
from autograder.host.kinds.captured import Captured, captures, outside, require_captured, require_no_write
from autograder.host.kinds.misconceptions import Misconception
from autograder.host.sandbox import open_sandbox

SETUP = "import torch\nfrom torch.nn import functional as F\n"


def reference(x, b):
    h = (x + b).relu()
    return torch.where(h.sum() > 4, h * 2, h - 1), h.mean()


def cases(draw):
    for rows, scale in ((3, 0.1), (5, 4.0), (1, 1.0)):
        yield Case((draw.normal(rows, 4, scale=scale), draw.normal(4)), label=f"with {rows} rows")


WANTED = Captured(
    reference,
    lambda draw: (draw.normal(2, 4), draw.normal(4)),
    cases,
    names=("y", "mean"),
    member="branch",
    dynamic=[[0], []],
    misconceptions=[Misconception(lambda x, b: (reference(x, b)[0], x.mean()), "The mean is that of x.")],
)

RIGHT = """
def branch(x, b):
    h = (x + b).relu()
    return torch.where(h.sum() > 4, h * 2, h - 1), h.mean()

def repaired():
    return {"branch": branch}
"""
WITH_COND = """
SCALE = torch.tensor([2.0, 2.0, 2.0, 2.0])

def repaired():
    def branch(x, b):
        h = (x + b).relu()

        def large(h):
            return torch.cond(h.sum() > 1e9, lambda h: h * 0.5, lambda h: h * SCALE, (h,))

        return torch.cond(h.sum() > 4, large, lambda h: h - 1, (h,)), h.mean()

    return {"branch": branch}
"""
WITH_VMAP = RIGHT.replace("(x + b).relu()", "torch.vmap(lambda row: row + b)(x).relu()")
WRITES = """
def repaired():
    def branch(x, b):
        h = x.clone()
        h.add_(b).relu_()
        low, high = h - 1, h * 2
        return torch.where(h.sum() > 4, high, low), h.mean()

    return {"branch": branch}
"""
MISTAKES = {
    "data-dependent": (
        RIGHT.replace("torch.where(h.sum() > 4, h * 2, h - 1)", "h * 2 if h.sum() > 4 else h - 1"),
        "Data-dependent branching",
    ),
    "print": (
        RIGHT.replace("    return torch", "    print('h'); return torch"),
        "cannot capture the function as one graph",
    ),
    "size fixed": (RIGHT.replace("h.mean()", "sum(h[i].mean() for i in range(len(h))) / len(h)"), "to 2"),
    "one branch": (RIGHT.replace("torch.where(h.sum() > 4, h * 2, h - 1)", "h - 1"), "y is off by"),
    "misconception": (RIGHT.replace("h.mean()", "x.mean()"), "The mean is that of x."),
    "item": (RIGHT.replace("h.mean()", "h * 0 + h.mean().item()"), "calls 'item.default'"),
    "one output": (RIGHT.replace(", h.mean()", ""), "returned 1 outputs"),
    "writes into an input": (RIGHT.replace("h = (x + b).relu()", "h = x.add_(b).relu_()"), "writes into its input"),
    "no such function": ("def repaired():\n    return {}\n", "has no function 'branch'"),
    "no dict": ("def repaired():\n    return 3\n", "return a dict"),
    "raises": (RIGHT.replace("h = ", "h = 1 / 0 + "), "ZeroDivisionError"),
}


@pytest.fixture(scope="module")
def sandbox():
    return open_sandbox()


def exercise(*checks):
    return Exercise("x", Kind.CAPTURED, "repaired", len(checks), checks, setup=SETUP, id="07_x")


def graded(sandbox, answer, run=None, seed=3):
    check = Check("captured", "capture", 1, run or captures(WANTED))
    return judge(exercise(check), {"setup": SETUP, "answer x": answer}, sandbox=sandbox, seed=seed)


LIKE_ANOTHER = RIGHT.replace("(x + b)", "(x + b).double().to(x)")


@pytest.mark.parametrize(
    "answer",
    [RIGHT, WITH_COND, WITH_VMAP, WRITES, LIKE_ANOTHER],
    ids=["where", "cond", "vmap", "in place", "of another's type"],
)
def test_a_right_function_earns_all(sandbox, answer):
    record = graded(sandbox, answer)
    assert record.points == 1, record.checks[0].message or record.message


@pytest.mark.parametrize("name", MISTAKES)
def test_a_mistake_is_told_and_earns_nothing(sandbox, name):
    answer, says = MISTAKES[name]
    record = graded(sandbox, answer)
    assert record.points == 0
    assert says in record.checks[0].message, record.checks[0].message


def test_dispatch_records_writes_and_the_host_counts_them(sandbox):
    seen = {}

    def run(answer, draw):
        wanted = replace(WANTED, cases=lambda d: [Case(WANTED.example(d))], how="dispatch", dynamic=())
        artifact = require_captured(answer, wanted, draw, gradients=True)
        writes = [artifact.called[name].operator for name in answer.writes(artifact, WANTED.example(draw))]
        seen.update(writes=writes, calls=artifact.calls(), outside=outside(artifact, ALLOWED))
        require_no_write(answer, artifact, WANTED.example(draw), "`f`: ")

    assert "`f`: the graph still writes, by aten.add_.Tensor;" in graded(sandbox, WRITES, run).checks[0].message
    assert seen["writes"] == ["torch.ops.aten.add_.Tensor", "torch.ops.aten.relu_.default"]
    assert seen["outside"] == ["torch.ops.aten.where"]
    assert seen["calls"] == 9


ALLOWED = {f"torch.ops.aten.{name}" for name in ["clone", "add_", "relu_", "sub", "mul", "sum", "gt", "mean"]}


def test_values_and_calls_of_a_member_cross_too(sandbox):
    answer = RIGHT.replace("h}", "h, 'plan': lambda question: {'open': question['dims']}}")

    def run(given, draw):
        if given.ask({"dims": [1]}, member="plan") != {"open": [1]}:
            raise CheckFailedError("plan")
        x, b = draw.normal(2, 4), draw.normal(4)
        (y, _) = given.call(Case((x, b)), member="branch").outputs
        if not torch.equal(y, reference(x, b)[0]):
            raise CheckFailedError("call")

    assert graded(sandbox, answer, run).points == 1


def test_one_of_two_functions_earns_half(sandbox):
    other = Captured(lambda x, b: x + b, WANTED.example, cases, member="other")
    answer = RIGHT.replace("h}", "h, 'other': lambda x, b: x - b}")
    record = graded(sandbox, answer, captures(WANTED, other))
    assert record.points == 0.5
    assert "1 of 2 functions are right" in record.checks[0].message
    raising = answer.replace("x - b", "x.nothing")
    assert graded(sandbox, raising, captures(WANTED, other)).points == 0.5


def test_weights_inside_a_function_cross_as_tensors(sandbox):
    answer = "W = torch.ones(4, 4)\n\ndef repaired(x):\n    return F.linear(x, W)\n"
    wanted = Captured(
        lambda x: F.linear(x, torch.ones(4, 4, dtype=x.dtype)),
        lambda draw: (draw.normal(2, 4),),
        lambda draw: [Case((draw.normal(2, 4),))],
    )
    assert graded(sandbox, answer, captures(wanted)).points == 1
