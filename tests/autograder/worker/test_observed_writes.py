"""What a call writes is observed while it runs, in whatever way it is written down."""

import operator

import pytest
import torch
from torch import fx, nn
from torch.nn import functional as F

from autograder.worker.observed_writes import observed_writes

WRITERS = {
    "a method": lambda x, y: x.mul_(y),
    "a method that has no effect on the numbers": lambda x, y: x.mul_(1),
    "out": lambda x, y: torch.mul(x, y, out=x),
    "several outs": lambda x, y: torch.max(x, 0, out=(y.select(0, 0), torch.zeros_like(y).long().select(0, 0))),
    "out by position": lambda x, y: F.normalize(x, 2.0, 1, 1e-12, y),
    "a flag": lambda x, y: F.relu(x, inplace=True),
    "a flag by position": lambda x, y: F.relu(x, True),
    "a view of it": lambda x, y: x.select(0, 0).copy_(y.select(0, 0)),
    "statistics": lambda x, y: F.batch_norm(x, y.mean(0), y.var(0), training=True),
    "rows that are too long": lambda x, y: F.embedding(torch.zeros_like(x).long(), y, max_norm=0.1),
    "what one alive tensor shares": lambda x, y: x.view(-1).neg_(),
}
READERS = {
    "dropout": lambda x, y: F.dropout(x, 0.5, True) * y,
    "one_hot": lambda x, y: F.one_hot(torch.zeros_like(x).long()),
    "einsum": lambda x, y: torch.einsum("ij,kj->ik", x, y),
    "statistics in evaluation": lambda x, y: F.batch_norm(x, y.mean(0), y.var(0)),
    "a flag that is off": lambda x, y: F.relu(x, inplace=False),
    "views": lambda x, y: x.view(-1)[::2].unsqueeze(0),
}


@pytest.mark.parametrize("name", WRITERS)
def test_a_call_that_writes_is_found(name):
    graph = fx.symbolic_trace(WRITERS[name])

    found = observed_writes(graph, [torch.randn(4, 6), torch.randn(4, 6)])

    (last,) = found
    assert last == list(graph.graph.nodes)[-2].name


def test_an_operator_of_python_that_writes_is_found():
    graph = fx.symbolic_trace(lambda x, y: operator.add(x, y))
    (call,) = graph.graph.find_nodes(op="call_function", target=operator.add)
    call.target = operator.iadd
    graph.recompile()

    assert observed_writes(graph, [torch.ones(2), torch.ones(2)]) == (call.name,)


@pytest.mark.parametrize("name", READERS)
def test_a_call_that_writes_only_into_what_it_makes_itself_is_not_one_that_writes(name):
    assert observed_writes(fx.symbolic_trace(READERS[name]), [torch.randn(4, 6), torch.randn(4, 6)]) == ()


@pytest.mark.parametrize("rows", [0, 1, 4])
@pytest.mark.parametrize(("module", "writes"), [(nn.ReLU(), ()), (nn.ReLU(inplace=True), ("_0",)), (nn.GELU(), ())])
def test_a_module_writes_if_its_operator_does(module, writes, rows):
    assert observed_writes(fx.symbolic_trace(nn.Sequential(module)), [torch.randn(rows, 6)]) == writes


def test_a_module_that_keeps_statistics_writes_while_it_trains():
    graph = fx.symbolic_trace(nn.Sequential(nn.BatchNorm1d(6)))

    assert observed_writes(graph.train(), [torch.randn(4, 6)]) == ("_0",)
    assert observed_writes(graph.eval(), [torch.randn(4, 6)]) == ()
