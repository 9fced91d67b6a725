"""What a clean worker keeps of a graph between two calls: the graph, and nothing that a call left behind."""

import sys

import torch
from torch import fx

from autograder.host.shared_inputs import to_raw
from autograder.protocol.requests.answers import Arguments, InputForm, TensorCall
from autograder.protocol.requests.loads import CallGraph, Cost, CountGraph, LoadGraph
from autograder.worker.clean_worker import load_graph, register_for
from autograder.worker.tensors import to_torch
from course_lib.graph import to_data


class Counting(torch.nn.Module):
    """Writes into a tensor of its own."""

    def __init__(self):
        super().__init__()
        self.register_buffer("calls", torch.zeros(1))

    def forward(self, x):
        return self.calls.add_(x).clone()


def test_a_call_finds_the_tensors_of_the_graph_as_they_came_where_the_host_asks_for_that():
    graph, tensors = to_data(fx.symbolic_trace(Counting()))
    handlers = load_graph(LoadGraph(graph, tuple(tensors), False), list(map(to_raw, tensors.values())))
    found = []
    for restored in (False, False, True, True):
        call = CallGraph(TensorCall(Arguments(({"tensor": 0},))), restored, count=False)
        (output,) = handlers[CallGraph](call, [to_raw(torch.ones(1))]).tensors
        found.append(to_torch(output).item())
    assert found == [1, 2, 1, 1]


class LargeOnce(torch.nn.Module):
    """Computes something large in its first run only."""

    def __init__(self):
        super().__init__()
        self.register_buffer("runs", torch.zeros(1))

    def forward(self, x):
        rows = torch.ops.aten.nonzero.default((self.runs + 0 * x).expand(8) == 0)
        self.runs.add_(x)
        return rows.expand(-1, 1000) + x


def test_a_run_is_counted_that_gives_the_results():
    graph, tensors = to_data(fx.symbolic_trace(LargeOnce()))
    handlers = load_graph(LoadGraph(graph, tuple(tensors), False), list(map(to_raw, tensors.values())))
    call = CallGraph(TensorCall(Arguments(({"tensor": 0},))), True, count=True)
    called = handlers[CallGraph](call, [to_raw(torch.ones(1))])
    (output,) = called.tensors
    assert called.body.cost.peak_bytes >= to_torch(output).nbytes == 4 * 8 * 1000
    forms = CountGraph((InputForm((1,), "float32"),))
    assert handlers[CountGraph](forms, ()).body.peak_bytes >= 4 * 8 * 1000, "what the call wrote is restored"


def test_a_graph_is_counted_on_forms_alone():
    graph, tensors = to_data(fx.symbolic_trace(torch.nn.Sequential(torch.nn.ReLU(), torch.nn.Tanh())))
    counted = load_graph(LoadGraph(graph, tuple(tensors), False), [])[CountGraph]
    assert counted(CountGraph((InputForm((2, 3), "float32"),)), ()).body == Cost(
        2, 48, 48, flops=0, peak_bytes=48, longest_side=0
    )


def test_operators_of_the_course_are_registered_only_for_graphs_that_call_one(monkeypatch):
    monkeypatch.delitem(sys.modules, "course_lib.kernels", raising=False)
    asked = []
    monkeypatch.setattr("importlib.import_module", asked.append)
    register_for(to_data(fx.symbolic_trace(torch.nn.ReLU()))[0])
    assert not asked
    register_for({"nodes": [{"target": "torch.ops.course_lib.bias_silu.default"}]})
    assert asked == ["course_lib.kernels"]
