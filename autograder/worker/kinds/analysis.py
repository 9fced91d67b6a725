"""Call an answer that reads programs: the host's text makes the program, and plain data comes back."""

import sys
import types
from collections.abc import Callable
from typing import Any

from torch import fx

from autograder.protocol import Handlers, Result, Tensors
from autograder.protocol.requests.answers import Analyse, Employ, Value
from autograder.worker.kinds.value import plain_data


def analysis_answer(entry: Callable[..., Any]) -> Handlers:
    """Return the request handlers for an analysis answer."""

    def analyse(request: Analyse, _: Tensors) -> Result[Value]:
        result = entry(*getattr(host_programs(request.text), request.make)(**request.arguments))
        graph = getattr(result, "graph", result)
        if isinstance(graph, fx.Graph):
            result = [[n.name, n.op, str(n.target), [a.name for a in n.all_input_nodes]] for n in graph.nodes]
        return Result(Value(plain_data(result, "the result")))

    def employ(request: Employ, _: Tensors) -> Result[Value]:
        module = host_programs(request.text)
        sys.modules[module.__name__] = module  # Dynamo imports the module of each function that it reads
        found = getattr(module, request.use)(entry, **request.arguments)
        return Result(Value(plain_data(found, "your answer")))

    return {Analyse: analyse, Employ: employ}


def host_programs(text: str) -> types.ModuleType:
    """Run the host's text as a module."""
    module = types.ModuleType("programs")
    exec(compile(text, "<programs>", "exec", dont_inherit=True), module.__dict__)
    return module
