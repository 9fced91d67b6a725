"""Call an answer that is a pass: it takes a graph and returns the transformed graph, both sent as data."""

import sys
from collections.abc import Callable
from typing import Any

import torch

from autograder.protocol import Handlers, Result, Tensors
from autograder.protocol.requests.answers import Called, CallTransformed, OwnOperator, Transform, WrittenGraph
from autograder.worker.source import AnswerError
from autograder.worker.tensors import call_on_tensors, to_raw, to_torch

OWN = "own."  # as `course_lib.graph` has it, which is imported when a graph comes


class NotAGraphError(AnswerError):
    """A pass returned something other than a graph module."""


def graph_answer(entry: Callable[..., Any]) -> Handlers:
    """Return the request handlers for a graph answer."""

    def transformed(graph_module: torch.fx.GraphModule) -> torch.fx.GraphModule:
        result = entry(graph_module)
        result = getattr(result, "graph_module", result)  # a torch.fx PassResult is accepted too
        if not isinstance(result, torch.fx.GraphModule):
            raise NotAGraphError(f"The pass returned a {type(result).__name__}; return the transformed GraphModule.")
        return result

    def transform(request: Transform, tensors: Tensors) -> Result[WrittenGraph]:
        result = _flattened(transformed(_sent(request, tensors)))
        _cut_off_from_parameters(result)
        return written(result)

    def call(request: CallTransformed, tensors: Tensors) -> Result[Called]:
        sent, own = _sent(request.transform, tensors), len(request.transform.paths)
        if request.outdated:
            output = sent.graph.output_node()
            results, output.args = output.args, (None,)
            sent.recompile()
            output.args = results
        return call_on_tensors(transformed(sent), request.call, tensors[own:])

    return {Transform: transform, CallTransformed: call}


def _sent(request: Transform, tensors: Tensors) -> torch.fx.GraphModule:
    """Return the graph of a request, with the shapes of its values."""
    import course_lib.kernels  # noqa: F401 - registers operators that the graph may call
    from course_lib.graph import from_data, propagate_shapes

    graph_module = from_data(request.graph, dict(zip(request.paths, map(to_torch, tensors), strict=False)))
    examples = [torch.empty(i.shape, dtype=getattr(torch, i.dtype), device="meta") for i in request.inputs]
    propagate_shapes(graph_module, examples)
    return graph_module


def _flattened(graph_module: torch.fx.GraphModule) -> torch.fx.GraphModule:
    """Return the graph with the operators of the modules that a schedule put into it, which are no data themselves."""
    layers = sys.modules.get("course_lib.schedule.layers")
    called = [graph_module.get_submodule(str(n.target)) for n in graph_module.graph.find_nodes(op="call_module")]
    if layers is None or not any(type(module).__module__ == layers.__name__ for module in called):
        return graph_module
    return torch.fx.GraphModule(graph_module, torch.fx.Tracer().trace(graph_module))


def _cut_off_from_parameters(graph_module: torch.fx.GraphModule) -> None:
    """Detach what the pass computed from parameters and keeps: in a graph it is a constant, and is judged as one."""
    for node in graph_module.graph.find_nodes(op="get_attr"):
        path, _, name = str(node.target).rpartition(".")
        try:
            owner = graph_module.get_submodule(path)
            tensor = getattr(owner, name)
        except AttributeError:  # writing the graph says what is missing
            continue
        if type(tensor) is torch.Tensor and tensor.requires_grad:
            setattr(owner, name, tensor.detach())


def written(graph_module: torch.fx.GraphModule) -> Result[WrittenGraph]:
    """Return the graph as data, its tensors, and what the operators of the answer's own are made of."""
    from course_lib.graph import to_data

    declared = _declared(graph_module)
    graph, kept = to_data(graph_module, own={target: f"{OWN}{each.name}" for target, each in declared.items()})
    operators = tuple(dict.fromkeys(declared.values()))
    return Result(WrittenGraph(graph, tuple(kept), operators), [to_raw(tensor, path) for path, tensor in kept.items()])


def _declared(graph_module: torch.fx.GraphModule) -> dict[Any, OwnOperator]:
    """Return the operators of `kernel_operator` that the graph calls, by their targets."""
    made = sys.modules.get("course_lib.kernel_programs.kernel_operator")
    if made is None:
        return {}
    called = {node.target for node in graph_module.graph.nodes if node.op == "call_function"}
    found = made.declared_operators()
    return {target: OwnOperator(**vars(each)) for target, each in found.items() if target in called}
