"""Call an answer that is a pass: a graph in, the transformed graph out, both as data."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from autograder.protocol import Message
from autograder.protocol.tensors import RawTensor
from autograder.worker.tensors import to_raw, to_torch

Reply = tuple[dict[str, Any], list[RawTensor]]


class NotAGraphError(TypeError):
    """A pass returned something that is no graph module."""


def graph_answer(entry: Callable[..., Any]) -> Callable[[Message], Reply]:
    """Calls take ``{"graph", "paths", "inputs"}`` and give ``{"graph", "paths"}``, tensors beside them.

    ``paths`` names the tensors in turn; ``inputs`` gives shape and dtype of each placeholder, which shape propagation
    writes into ``node.meta["tensor_meta"]`` before the pass runs.
    """

    def answer(message: Message) -> Reply:
        import course_lib.kernels  # noqa: F401 - registers operators that the graph may call
        from course_lib.graph import from_data, propagate_shapes, to_data

        tensors = dict(zip(message.body["paths"], map(to_torch, message.tensors), strict=True))
        graph_module = from_data(message.body["graph"], tensors)
        examples = [
            torch.empty(i["shape"], dtype=getattr(torch, i["dtype"]), device="meta") for i in message.body["inputs"]
        ]
        propagate_shapes(graph_module, examples)
        result = entry(graph_module)
        result = getattr(result, "graph_module", result)  # a torch.fx PassResult is welcome too
        if not isinstance(result, torch.fx.GraphModule):
            raise NotAGraphError(f"The pass returned a {type(result).__name__}; return the transformed GraphModule.")
        graph, kept = to_data(result)
        return {"graph": graph, "paths": list(kept)}, [to_raw(t, path) for path, t in kept.items()]

    return answer
