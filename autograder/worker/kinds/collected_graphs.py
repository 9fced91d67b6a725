"""Run an answer that collects graphs: a program of the host's goes in, the graphs that the answer kept come out."""

from __future__ import annotations

import functools
import linecache
from collections.abc import Callable
from typing import Any

import torch
from torch import fx

from autograder.protocol import Message
from autograder.protocol.tensors import RawTensor
from autograder.worker.kinds.graph import NotAGraphError
from autograder.worker.tensors import to_raw, to_torch
from autograder.worker.untimed_guards import leave_guards_untimed

Reply = tuple[dict[str, Any], list[RawTensor]]
EXPECTED = "return (results, graphs): a list with the result of each call, and a list of (graph module, shapes)"


def collected(entry: Callable[..., Any], message: Message) -> Reply:
    """Call ``entry(function, calls)`` on a function that the host wrote.

    Body: ``program``, the source text that defines the function ``name``, and ``calls``, each with ``args`` and
    ``kwargs`` in which ``{"tensor": i}`` stands for tensor number ``i``. Reply: ``results``, their number, and
    ``graphs``, each with ``graph``, ``paths`` and ``shapes``; the tensors are the results, then those of the graphs.
    """
    leave_guards_untimed()
    body, tensors = message.body, [to_torch(raw) for raw in message.tensors]
    function = _defined(body["program"], body["name"])
    calls = [
        (
            tuple(_filled(a, tensors) for a in call["args"]),
            {name: _filled(a, tensors) for name, a in call["kwargs"].items()},
        )
        for call in body["calls"]
    ]
    result = entry(function, calls)
    if not isinstance(result, tuple | list) or len(result) != 2:
        raise NotAGraphError(f"The answer returned a {type(result).__name__}; {EXPECTED}.")
    results, graphs = result
    if not isinstance(results, list) or not isinstance(graphs, list):
        raise NotAGraphError(f"The answer returned two things that are no lists; {EXPECTED}.")
    raws = [to_raw(r, "a result") for r in results]
    written = [_written(item, raws) for item in graphs]
    return {"results": len(results), "graphs": written}, raws


@functools.cache  # the same program is the same function, also for what Dynamo keeps of it
def _defined(program: str, name: str) -> Callable[..., Any]:
    """The function, with its text where Dynamo looks for it."""
    filename = "<program>"
    linecache.cache[filename] = (len(program), None, program.splitlines(keepends=True), filename)
    namespace: dict[str, Any] = {}
    exec(compile(program, filename, "exec"), namespace)
    return namespace[name]


def _filled(argument: Any, tensors: list[torch.Tensor]) -> Any:
    return tensors[argument["tensor"]] if isinstance(argument, dict) else argument


def _written(item: Any, raws: list[RawTensor]) -> dict[str, Any]:
    """One graph as data; its tensors are added to ``raws``."""
    from course_lib.graph import to_data

    if not isinstance(item, tuple | list) or len(item) != 2 or not isinstance(item[0], fx.GraphModule):
        raise NotAGraphError(f"An entry of graphs is no pair that begins with a GraphModule; {EXPECTED}.")
    graph, kept = to_data(item[0])
    raws += [to_raw(t, path) for path, t in kept.items()]
    shapes = [[int(size) for size in shape] for shape in item[1]]
    return {"graph": graph, "paths": list(kept), "shapes": shapes}
