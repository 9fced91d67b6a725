"""The recorder gives the graph that `make_fx` gives, and refuses a number of Python that would be kept."""

import pytest
import torch
from torch import nn
from torch.fx.experimental.proxy_tensor import make_fx
from torch.nn import functional as F

from autograder.worker.operator_recorder import recorded

WEIGHT, PARAMETER = torch.randn(3, 4), nn.Parameter(torch.randn(4))


def writes(x):
    y = torch.zeros_like(x)
    y[:, 1:] = x[:, 1:]
    y += 1
    low, high = y.split(2, 1)
    low.mul_(high)
    return {"y": y, "others": [low.max(0).values, 3]}


def with_constants(x):
    scale = torch.tensor(0.5)
    scale.add_(1)
    shape = torch.tensor([2, 2])
    return F.linear(x, WEIGHT) * scale.item(), x @ WEIGHT.mT + shape.sum(), x * PARAMETER, WEIGHT


def without_gradients(x):
    with torch.inference_mode():
        return F.linear(x, torch.eye(4))


def composed(x):
    return F.layer_norm(x, (4,)), torch.einsum("ij,kj->ik", x, x), torch.where(x > 0, x, 0.0), torch.zeros(3).sum()


@pytest.mark.parametrize("function", [writes, with_constants, without_gradients, composed])
def test_the_graph_is_that_of_make_fx_and_computes_the_same(function):
    x, y = torch.randn(3, 4), torch.randn(3, 4)
    mine, usual = recorded(function, [x.clone()]), make_fx(function)(x.clone())

    calls = [[node.target for node in each.graph.nodes if node.op == "call_function"] for each in (mine, usual)]
    assert calls[0] == calls[1]
    torch.testing.assert_close(mine(y.clone()), function(y.clone()))


def test_a_write_into_a_constant_of_the_call_does_not_change_the_next_run():
    def counted(x):
        count = torch.tensor([1.0, 2.0])
        return count.add_(x)

    graph = recorded(counted, [torch.ones(2)])
    graph(torch.ones(2))
    torch.testing.assert_close(graph(torch.ones(2)), torch.tensor([2.0, 3.0]))


def test_memory_that_was_not_written_is_not_a_number():
    def partly_written(x):
        y, whole = torch.empty_like(x), torch.empty(2, dtype=torch.long) * 0
        y[0] = x[0]
        return y, x.new_empty(2), torch.empty(3), whole

    y, new, plain, whole = recorded(partly_written, [torch.ones(2, 3)])(torch.ones(2, 3))
    assert torch.equal(y[0], torch.ones(3))
    assert all(each.isnan().all() for each in (y[1], new, plain))
    assert torch.equal(whole, torch.zeros(2, dtype=torch.long))


def _one_hot(x):
    return x + torch.nn.functional.one_hot(torch.zeros(1, dtype=torch.long), 4)


@pytest.mark.parametrize(
    "function",
    [lambda x: x * x.sum().item(), lambda x: x if x.sum() > 0 else -x, lambda x: x * float(WEIGHT[0, 0]), _one_hot],
    ids=["item", "branch", "of a tensor from outside", "inside a function of a constant"],
)
def test_a_number_that_the_graph_would_keep_is_refused(function):
    with pytest.raises(RuntimeError, match=r"of an input, or of a tensor that an operator made.*with tensors"):
        recorded(function, [torch.randn(3, 4)])
