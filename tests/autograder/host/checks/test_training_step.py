"""The score of a training step: nothing for what stays, all for the best, and no counter decides alone."""

import pytest
import torch

from autograder.host.artifacts import read_artifact
from autograder.host.checks.training_step import LEAST, Passed, advice_on, score
from autograder.host.checks.training_step import counted as counted_and_compared
from autograder.host.draw import Draw
from autograder.host.exercise import CheckFailedError
from autograder.host.kinds.graph import GraphAnswer
from autograder.host.traced import Program, TensorSpec, traced
from autograder.protocol import Result
from autograder.protocol.requests.answers import WrittenGraph
from autograder.protocol.requests.loads import CountStep, LoadGraph, StepCost
from autograder.worker.clean_worker import load_graph
from autograder.worker.tensors import to_raw
from course_lib.graph import to_data
from tests.autograder.host.in_process import InProcess

BEFORE = {"launches": 100, "bytes": 1000}
BEST = {"launches": 50, "bytes": 500}


def test_what_is_unchanged_or_worse_earns_nothing():
    assert score(BEFORE, BEFORE, BEST) == 0
    assert score({"launches": 101, "bytes": 1000}, BEFORE, BEST) == 0


def test_the_best_or_better_earns_all_and_never_more():
    assert score(BEST, BEFORE, BEST) == 1
    assert score({"launches": 1, "bytes": 1}, BEFORE, BEST) == 1


def test_the_advice_names_the_counters_that_can_fall_and_speaks_of_fusion_only_where_calls_can():
    best = {"kernels": 9, "launches": 20, "saved_bytes": 100}
    assert advice_on({"kernels": 9, "launches": 20, "saved_bytes": 102}, best) == (
        "Still above a good result: saved_bytes. The kernels are few enough: what they read, write and keep for "
        "backward can be less."
    )
    assert advice_on({"kernels": 10, "launches": 20, "saved_bytes": 102}, best) == (
        "Still above a good result: kernels, saved_bytes. Look for the residual as first and as second term."
    )


def test_each_counter_has_its_part():
    fewer = score({**BEFORE, "launches": 50}, BEFORE, BEST)
    assert fewer == pytest.approx((0.5**0.5 - 0.5) / 0.5)
    assert fewer == pytest.approx(score({**BEFORE, "bytes": 500}, BEFORE, BEST))


def test_a_counter_that_explodes_is_held():
    held = score({"launches": 50, "bytes": 500 / LEAST}, BEFORE, {"launches": 50, "bytes": 500})
    assert score({"launches": 50, "bytes": 10**9}, BEFORE, BEST) == held


def test_counters_that_nothing_can_improve_earn_nothing_and_end_no_grading() -> None:
    for before in (BEST, dict.fromkeys(BEST, 0), dict.fromkeys(BEST, -(10**300))):
        assert score(BEST, before, BEST) == 0


def test_the_worker_counts_forward_and_backward():
    module = torch.fx.symbolic_trace(torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.Tanh()))
    graph, tensors = to_data(module)
    handlers = load_graph(LoadGraph(graph, tuple(tensors), None), [to_raw(t, path) for path, t in tensors.items()])
    by = tuple(path for path, _ in module.named_parameters())
    found = handlers[CountStep](CountStep(by, 0), [to_raw(torch.randn(2, 4), "x")]).body.cost
    assert isinstance(found, StepCost)
    assert (found.kernels, found.saved_bytes) == (2, 2 * 4 * 4)
    assert found.launches > 2 * found.kernels


def counted(module, *, times=1):
    """Return the counters of a module's step for two rows of four numbers, of the last of so many counts."""
    graph, tensors = to_data(module)
    handlers = load_graph(LoadGraph(graph, tuple(tensors), None), [to_raw(t, path) for path, t in tensors.items()])
    request, rows = CountStep(("linear.weight", "linear.bias"), 0), [to_raw(torch.randn(2, 4), "x")]
    return [handlers[CountStep](request, rows).body.cost for _ in range(times)][-1]


class RowsOf(torch.nn.Module):
    """A product of those rows whose first number is above a bias; with `marks`, the bias is raised behind it."""

    def __init__(self, *, marks=False):
        super().__init__()
        self.linear, self.marks = torch.nn.Linear(4, 4), marks
        self.bias = torch.nn.Parameter(torch.full((1,), -1e9 if marks else 0.0))

    def forward(self, x):
        rows = torch.ops.aten.nonzero.default(x[:, 0].abs() > self.bias).squeeze(1)
        result = self.linear(torch.ops.aten.index_select.default(x, 0, rows))
        if self.marks:
            self.bias.detach().fill_(1e9)
        return result


@pytest.mark.parametrize("marks", [False, True])
def test_a_step_is_counted_with_all_rows_whatever_another_run_wrote(marks):
    module = torch.fx.symbolic_trace(RowsOf(marks=marks))
    assert counted(module, times=2).saved_bytes >= 2 * 4 * 4


def test_more_than_the_best_in_one_counter_does_not_pay_for_another():
    assert score({"launches": 1, "bytes": 1000}, BEFORE, BEST) == score({"launches": 50, "bytes": 1000}, BEFORE, BEST)


def of_twice_the_gradient(y):
    return y.detach() + 2 * (y - y.detach())


def of_no_gradient(y):
    return y.detach()


def of_another_loss(y):
    return y + 1


class TwoLayers(torch.nn.Module):
    """Two linear layers, and a function between them."""

    def __init__(self, between):
        super().__init__()
        self.first, self.second, self.between = torch.nn.Linear(4, 4), torch.nn.Linear(4, 4), between

    def forward(self, x):
        return self.second(self.between(torch.tanh(self.first(x))))


def step_counted(between):
    """Return the counters of the step of a graph with this function in it, held against the program without it."""
    draw = Draw(5, "counted")
    program = Program("of two linear layers", lambda: TwoLayers(lambda y: y), (TensorSpec((3, 4)),), 0, training=True)
    source = traced(program, draw)
    graph, tensors = to_data(torch.fx.symbolic_trace(TwoLayers(between)))
    raw = [to_raw(tensor, path) for path, tensor in tensors.items()]
    artifact = read_artifact(Result(WrittenGraph(graph, tuple(tensors)), raw), max_nodes=99)
    artifact = artifact.with_tensors(source.tensors)
    answer = GraphAnswer(InProcess(), InProcess())
    return counted_and_compared(answer, Passed(source, artifact, ()), artifact, (draw.normal(3, 4),), 7)


def test_the_step_that_is_counted_is_right_if_loss_and_gradients_are_those_of_the_program():
    assert step_counted(lambda y: y)["launches"] > 4


@pytest.mark.parametrize(
    ("between", "words"),
    [
        (of_twice_the_gradient, "The gradient by `first.weight` is off"),
        (of_no_gradient, "No gradient reaches `first.weight`"),
        (of_another_loss, "The loss is off"),
    ],
    ids=["twice the gradient", "no gradient", "another loss"],
)
def test_loss_and_gradients_of_the_very_step_that_is_counted_are_compared(between, words):
    with pytest.raises(CheckFailedError, match=f"{words}.* in the step that is counted"):
        step_counted(between)
