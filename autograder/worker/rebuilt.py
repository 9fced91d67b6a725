"""Run a graph that the host has checked: no student's Python is in this process."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from autograder.protocol import Message
from autograder.protocol.tensors import RawTensor
from autograder.worker.course_operators import register_for
from autograder.worker.kinds.callable import call_on_tensors
from autograder.worker.rounds import with_rounds
from autograder.worker.tensors import to_torch

Reply = tuple[dict[str, Any], list[RawTensor]]


def load(message: Message) -> Callable[[Message], Reply]:
    """Rebuild the graph of a LOAD message; calls run it on tensors, alone or in rounds.

    A call with ``anew`` finds the graph's own tensors as they came, whatever earlier ones wrote into them; one with
    ``count`` also counts what the graph costs.
    """
    register_for(message.body["graph"])
    from course_lib.graph import cost, from_data

    came = list(map(to_torch, message.tensors))
    own = [tensor.clone() for tensor in came]
    graph_module = from_data(message.body["graph"], dict(zip(message.body["paths"], own, strict=True)))
    if message.body["training"] is not None:  # else its modules are in the modes that they came with
        graph_module.train(message.body["training"])

    def answer(call: Message) -> Reply:
        for tensor, value in zip(own, came, strict=True) if call.body.get("anew") else ():
            tensor.copy_(value)
        reply, tensors = call_on_tensors(graph_module, call)
        if call.body.get("count"):
            counted = cost(graph_module, [to_torch(raw) for raw in call.tensors])
            reply["cost"] = {
                "launches": counted.launches,
                "bytes_read": counted.bytes_read,
                "bytes_written": counted.bytes_written,
            }
        return reply, tensors

    return with_rounds(graph_module, answer)
