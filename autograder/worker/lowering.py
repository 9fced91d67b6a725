"""Count what Inductor makes of a program: no student's Python is in this process.

The program is a graph that the host has checked, or one that the host describes by its steps. How large it is may be a
student's choice, and what Inductor does with it takes time and memory, so that the host leaves it to this process.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch

from autograder.protocol import Json, Result
from autograder.protocol.requests.loads import LoadLowering, LoweredCost, LowerGraph, LowerSteps
from autograder.worker.course_operators import register_for
from autograder.worker.handlers import Handlers, Tensors
from autograder.worker.tensors import to_torch


def load_lowering(request: LoadLowering, tensors: Tensors) -> Handlers:
    """Take the graph of the request, if it has one; requests lower that graph, or a program of the host's."""
    graph = _rebuilt(request, tensors) if request.graph is not None else None

    def lower_graph(_: LowerGraph, tensors: Tensors) -> Result[LoweredCost]:
        assert graph is not None, "a graph was loaded"
        return _counted(graph, [to_torch(raw) for raw in tensors], {})

    def lower_steps(request: LowerSteps, _: Tensors) -> Result[LoweredCost]:
        from course_lib.models import program_from_steps

        program, inputs = program_from_steps(request.steps)
        return _counted(program, inputs, request.config)

    return {LowerGraph: lower_graph, LowerSteps: lower_steps}


def _rebuilt(request: LoadLowering, tensors: Tensors) -> torch.fx.GraphModule:
    assert request.graph is not None, "a graph comes with the request"
    register_for(request.graph)
    from course_lib.graph import from_data

    sent = {path: to_torch(raw).clone() for path, raw in zip(request.paths, tensors, strict=True)}
    return from_data(request.graph, sent).eval()


def _counted(
    program: Callable[..., Any], inputs: Sequence[torch.Tensor], config: Mapping[str, Json]
) -> Result[LoweredCost]:
    """Count kernels that Inductor wrote, calls of others, bytes, loops, and the graphs that Dynamo made."""
    from course_lib.graph import scheduled

    found = scheduled(program, inputs, config=config)
    cost = found.cost
    counted = LoweredCost(
        generated_kernels=cost.generated_kernels,
        library_calls=cost.library_calls,
        bytes_moved=cost.bytes_moved,
        graphs=cost.graphs,
        fused_loops=found.kernels,
    )
    return Result(counted)
