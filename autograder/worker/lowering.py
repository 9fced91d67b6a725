"""Count what Inductor makes of a program: no student's Python is in this process.

The program is a graph that the host has checked, or one that the host describes by its steps. How large it is may be a
student's choice, and what Inductor does with it takes time and memory, so that the host leaves it to this process.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch

from autograder.protocol import Message
from autograder.protocol.tensors import RawTensor
from autograder.worker.course_operators import register_for
from autograder.worker.tensors import to_torch

Reply = tuple[dict[str, Any], list[RawTensor]]


def load(message: Message) -> Callable[[Message], Reply]:
    """Take the graph of a LOAD message, or nothing.

    A call lowers the graph for the tensors that it brings; with ``steps`` in its body, it lowers the program of which
    they are the description (see `course_lib.models.program_from_steps`), with the options in ``config``.
    """
    graph = _rebuilt(message) if "graph" in message.body else None

    def answer(call: Message) -> Reply:
        from course_lib.models import program_from_steps

        if graph is not None:
            return _counted(graph, [to_torch(raw) for raw in call.tensors], {})
        program, inputs = program_from_steps(call.body["steps"])
        return _counted(program, inputs, call.body["config"])

    return answer


def _rebuilt(message: Message) -> torch.fx.GraphModule:
    register_for(message.body["graph"])
    from course_lib.graph import from_data

    paths = message.body["paths"]
    tensors = {p: to_torch(t).clone() for p, t in zip(paths, message.tensors, strict=True)}
    return from_data(message.body["graph"], tensors).eval()


def _counted(program: Callable[..., Any], inputs: Sequence[torch.Tensor], config: dict[str, Any]) -> Reply:
    """Kernels that Inductor wrote, calls of others, bytes, loops, and the number of graphs that Dynamo made."""
    from course_lib.graph import scheduled

    found = scheduled(program, inputs, config=config)
    cost = found.cost
    return {
        "generated_kernels": cost.generated_kernels,
        "library_calls": cost.library_calls,
        "bytes_moved": cost.bytes_moved,
        "graphs": cost.graphs,
        "fused_loops": found.kernels,
    }, []
