"""Call an answer that reads programs: the host's text makes the program, and plain data comes back."""

from __future__ import annotations

import types
from collections.abc import Callable
from typing import Any

from torch import fx

from autograder.protocol import Message
from autograder.protocol.tensors import RawTensor
from autograder.worker.kinds.callable import plain_data

Reply = tuple[dict[str, Any], list[RawTensor]]


def analysis_answer(entry: Callable[..., Any]) -> Callable[[Message], Reply]:
    """Calls take ``{"text", "make", "arguments"}`` and give ``{"value": JSON}``.

    The function ``make`` of the module ``text`` gives what the answer is called with. A graph that the answer returns
    is written as rows of name, op, target and the names of the nodes it reads.
    """

    def answer(message: Message) -> Reply:
        body = message.body
        module = types.ModuleType("programs")
        exec(compile(body["text"], "<programs>", "exec", dont_inherit=True), module.__dict__)
        result = entry(*getattr(module, body["make"])(**body["arguments"]))
        graph = getattr(result, "graph", result)
        if isinstance(graph, fx.Graph):
            result = [[n.name, n.op, str(n.target), [a.name for a in n.all_input_nodes]] for n in graph.nodes]
        return {"value": plain_data(result, "the result")}, []

    return answer
