"""Call an answer that reads programs: the host's text makes the program, and plain data comes back."""

import sys
import types
from collections.abc import Callable, Sequence
from typing import Any

from torch import fx, nn

from autograder.protocol import Handlers, Result, Tensors
from autograder.protocol.requests.answers import Analyse, Employ, Value
from autograder.worker.kinds.value import plain_data
from autograder.worker.source import AnswerError

ClassState = tuple[type, dict[str, Any]]  # a class, and what it defines


class ChangedProgramError(AnswerError):
    """The answer changed the classes of a program that it was to read."""


def analysis_answer(entry: Callable[..., Any]) -> Handlers:
    """Return the request handlers for an analysis answer."""

    def analyse(request: Analyse, _: Tensors) -> Result[Value]:
        given = getattr(host_programs(request.text), request.make)(**request.arguments)
        before = _classes(given)
        result = entry(*given)
        _require_same_classes(before, _classes(given))
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


def _classes(given: Sequence[object]) -> list[ClassState]:
    """Return the class of each module in the programs, and what the class defines."""
    parts = [part for program in given if isinstance(program, nn.Module) for part in program.modules()]
    return [(type(part), dict(vars(type(part)))) for part in parts]


def _require_same_classes(before: Sequence[ClassState], after: Sequence[ClassState]) -> None:
    if before != after:
        changed = {old[0].__name__ for old, new in zip(before, after, strict=False) if old != new}
        raise ChangedProgramError(
            f"After the call classes of the model are no longer what they were: {', '.join(sorted(changed))}. They "
            "belong to whoever calls: read the model, and keep rules of your own in classes of your own."
        )
