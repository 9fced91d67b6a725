"""Run a graph that the host has checked: no student's Python is in this process."""

import torch

from autograder.protocol import Result
from autograder.protocol.requests.loads import CallGraph, Cost, GraphCalled, LoadGraph
from autograder.worker.course_operators import register_for
from autograder.worker.handlers import Handlers, Tensors
from autograder.worker.rounds import Rounds
from autograder.worker.tensor_calls import call_on_tensors
from autograder.worker.tensors import to_torch


def load_graph(request: LoadGraph, tensors: Tensors) -> Handlers:
    """Rebuild the graph; requests run it on tensors, alone or in rounds."""
    register_for(request.graph)
    from course_lib.graph import from_data

    sent = list(map(to_torch, tensors))
    own = [tensor.clone() for tensor in sent]
    graph_module = from_data(request.graph, dict(zip(request.paths, own, strict=True)))
    if request.training is not None:
        graph_module.train(request.training)

    def call(request: CallGraph, tensors: Tensors) -> Result[GraphCalled]:
        for tensor, value in zip(own, sent, strict=True) if request.restored else ():
            tensor.copy_(value)
        result = call_on_tensors(graph_module, request.call, tensors)
        cost = _cost(graph_module, tensors) if request.count else None
        return Result(GraphCalled(result.body, cost), result.tensors)

    return {CallGraph: call, **Rounds(graph_module).handlers()}


def _cost(graph_module: torch.fx.GraphModule, tensors: Tensors) -> Cost:
    from course_lib.graph import cost

    counted = cost(graph_module, [to_torch(raw) for raw in tensors])
    return Cost(counted.launches, counted.bytes_read, counted.bytes_written)
