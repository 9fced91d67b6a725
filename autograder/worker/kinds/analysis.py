"""Call an answer that reads programs: the host's text makes the program, and plain data comes back."""

import types
from collections.abc import Callable
from typing import Any

from torch import fx

from autograder.protocol import Handlers, Result, Tensors
from autograder.protocol.requests.answers import Analyse, Value
from autograder.worker.kinds.value import plain_data


def analysis_answer(entry: Callable[..., Any]) -> Handlers:
    """Return the request handlers for an analysis answer."""

    def analyse(request: Analyse, _: Tensors) -> Result[Value]:
        module = types.ModuleType("programs")
        exec(compile(request.text, "<programs>", "exec", dont_inherit=True), module.__dict__)
        result = entry(*getattr(module, request.make)(**request.arguments))
        graph = getattr(result, "graph", result)
        if isinstance(graph, fx.Graph):
            result = [[n.name, n.op, str(n.target), [a.name for a in n.all_input_nodes]] for n in graph.nodes]
        return Result(Value(plain_data(result, "the result")))

    return {Analyse: analyse}
