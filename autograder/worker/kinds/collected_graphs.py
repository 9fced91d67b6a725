"""Let an answer collect the graphs that Dynamo makes of a program of the host, and pack results and graphs.

Where the host asks for it, each graph is written down as Dynamo gives it to the backend, too. So the host sees whether
the backend changed it, or whether the program was another one before.
"""

import functools
import linecache
import types
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from typing import Any, cast

import torch
from torch import fx

from autograder.protocol import RawTensor, Result, Tensors
from autograder.protocol.requests.answers import Collect, CollectedGraph, CollectedGraphs, WrittenGraph
from autograder.worker.kinds.graph import NotAGraphError
from autograder.worker.tensors import filled, to_raw, to_torch
from autograder.worker.untimed_guards import leave_guards_untimed

FUNCTIONS = {name: value for name, value in vars(torch).items() if not name.startswith("_") and callable(value)}
"""The functions of PyTorch before an answer is loaded: the answer may put others in their place, but not for us."""
EXPECTED = "return (results, graphs): a list with the result of each call, and a list of (graph module, shapes)"


def collected(entry: Callable[..., Any], request: Collect, tensors: Tensors) -> Result[CollectedGraphs]:
    """Call `entry(function, calls)` on a function that the host wrote, and pack the returned results and graphs."""
    leave_guards_untimed()
    inputs = [to_torch(raw) for raw in tensors]
    function = _defined(request.program, request.name)
    calls = [(tuple(args), kwargs) for args, kwargs in (filled(call, inputs) for call in request.calls)]
    given: list[WrittenGraph] = []
    of_given: list[RawTensor] = []
    with _written_as_given(given, of_given) if request.given else nullcontext():
        result = entry(function, calls)
    if not isinstance(result, tuple | list) or len(result) != 2:
        raise NotAGraphError(f"The answer returned a {type(result).__name__}; {EXPECTED}.")
    results, graphs = result
    if not isinstance(results, list) or not isinstance(graphs, list):
        raise NotAGraphError(f"The answer returned two things that are no lists; {EXPECTED}.")
    raws = [to_raw(r, "a result") for r in results]
    kept = tuple(_kept(item, raws) for item in graphs)
    return Result(CollectedGraphs(len(results), kept, tuple(given)), [*raws, *of_given])


@contextmanager
def _written_as_given(graphs: list[WrittenGraph], raws: list[RawTensor]) -> Iterator[None]:
    """Write down each graph that Dynamo gives to a backend, before the backend has it."""
    from torch._dynamo.output_graph import OutputGraph

    give = OutputGraph.call_user_compiler

    def writing(self: Any, graph_module: fx.GraphModule, *args: Any, **kwargs: Any) -> Any:
        graphs.append(_data_of(graph_module, raws))
        return give(self, graph_module, *args, **kwargs)

    OutputGraph.call_user_compiler = writing
    try:
        yield
    finally:
        OutputGraph.call_user_compiler = give


@functools.cache  # the same program gives the same function, so that Dynamo's cache applies
def _defined(program: str, name: str) -> Callable[..., Any]:
    """Return the function, and put its source text where Dynamo looks for it."""
    # its own name, or Dynamo takes sizes of another program of this name for dynamic ones of this one
    filename = f"<program {zlib.crc32(program.encode())}>"
    linecache.cache[filename] = (len(program), None, program.splitlines(keepends=True), filename)
    namespace: dict[str, Any] = {}
    exec(compile(program, filename, "exec"), namespace)
    if namespace.get("torch") is torch:
        namespace["torch"] = types.ModuleType("torch")
        vars(namespace["torch"]).update({**vars(torch), **FUNCTIONS})
    return cast("Callable[..., Any]", namespace[name])


def _kept(item: Any, raws: list[RawTensor]) -> CollectedGraph:
    """Return one graph as data; its tensors are added to `raws`."""
    if not isinstance(item, tuple | list) or len(item) != 2 or not isinstance(item[0], fx.GraphModule):
        raise NotAGraphError(f"An entry of graphs is no pair that begins with a GraphModule; {EXPECTED}.")
    graph = _data_of(item[0], raws)
    shapes = tuple(tuple(int(size) for size in shape) for shape in item[1])
    return CollectedGraph(graph, shapes)


def _data_of(graph_module: fx.GraphModule, raws: list[RawTensor]) -> WrittenGraph:
    from course_lib.graph import to_data

    graph, kept = to_data(graph_module)
    raws += [to_raw(t, path) for path, t in kept.items()]
    return WrittenGraph(graph, tuple(kept))
