"""Run an answer that collects graphs: a program of the host's goes in, the graphs that the answer kept come out."""

import functools
import linecache
from collections.abc import Callable
from typing import Any

from torch import fx

from autograder.protocol import RawTensor, Result
from autograder.protocol.requests.answers import Collect, CollectedGraph, CollectedGraphs
from autograder.worker.handlers import Tensors
from autograder.worker.kinds.graph import NotAGraphError
from autograder.worker.tensor_calls import filled
from autograder.worker.tensors import to_raw, to_torch
from autograder.worker.untimed_guards import leave_guards_untimed

EXPECTED = "return (results, graphs): a list with the result of each call, and a list of (graph module, shapes)"


def collected(entry: Callable[..., Any], request: Collect, tensors: Tensors) -> Result[CollectedGraphs]:
    """Call `entry(function, calls)` on a function that the host wrote, and pack what it collected."""
    leave_guards_untimed()
    inputs = [to_torch(raw) for raw in tensors]
    function = _defined(request.program, request.name)
    calls = [(tuple(args), kwargs) for args, kwargs in (filled(call, inputs) for call in request.calls)]
    result = entry(function, calls)
    if not isinstance(result, tuple | list) or len(result) != 2:
        raise NotAGraphError(f"The answer returned a {type(result).__name__}; {EXPECTED}.")
    results, graphs = result
    if not isinstance(results, list) or not isinstance(graphs, list):
        raise NotAGraphError(f"The answer returned two things that are no lists; {EXPECTED}.")
    raws = [to_raw(r, "a result") for r in results]
    written = tuple(_written(item, raws) for item in graphs)
    return Result(CollectedGraphs(len(results), written), raws)


@functools.cache  # the same program is the same function, also for what Dynamo keeps of it
def _defined(program: str, name: str) -> Callable[..., Any]:
    """Return the function, with its text where Dynamo looks for it."""
    filename = "<program>"
    linecache.cache[filename] = (len(program), None, program.splitlines(keepends=True), filename)
    namespace: dict[str, Callable[..., Any]] = {}
    exec(compile(program, filename, "exec"), namespace)
    return namespace[name]


def _written(item: Any, raws: list[RawTensor]) -> CollectedGraph:
    """Return one graph as data; its tensors are added to `raws`."""
    from course_lib.graph import to_data

    if not isinstance(item, tuple | list) or len(item) != 2 or not isinstance(item[0], fx.GraphModule):
        raise NotAGraphError(f"An entry of graphs is no pair that begins with a GraphModule; {EXPECTED}.")
    graph, kept = to_data(item[0])
    raws += [to_raw(t, path) for path, t in kept.items()]
    shapes = tuple(tuple(int(size) for size in shape) for shape in item[1])
    return CollectedGraph(graph, tuple(kept), shapes)
