"""Graphs for Inductor's pattern matcher: decomposed as Inductor decomposes them, with a fake value at each node.

This module uses private parts of PyTorch, which may change.
"""

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import fx, nn
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.fx.experimental.proxy_tensor import make_fx
from torch.fx.passes.fake_tensor_prop import FakeTensorProp

from course_lib.errors import CaptureError
from course_lib.isolation import modes_kept


def decomposed(function: Callable[..., Any], inputs: Sequence[torch.Tensor]) -> fx.GraphModule:
    """Return the graph of ATen operators that Inductor's passes meet for this function, in evaluation.

        >>> graph_module = decomposed(torch.nn.functional.silu, [torch.ones(2)])
        >>> [node.name for node in graph_module.graph.nodes]
        ['arg0_1', 'neg', 'exp', 'add', 'div', 'output']

    Nothing is computed: `inputs` give only shapes, strides and dtypes. Each node has a fake tensor in `meta["val"]`,
    which is a tensor without memory. Raises `CaptureError` for a module that holds tensors: give a function
    that takes them, as the graphs of Inductor do.
    """
    if isinstance(function, nn.Module) and function.state_dict():
        raise CaptureError(
            f"decomposed got a {type(function).__name__}, whose parameters would be constants; give a function that "
            "takes them, such as lambda x, weight: torch.nn.functional.linear(x, weight)."
        )
    from torch._inductor.decomposition import select_decomp_table  # here, since importing Inductor takes seconds

    with modes_kept(), torch.no_grad():
        made = make_fx(lambda *given: function(*given), select_decomp_table(), tracing_mode="fake")(*inputs)
    made.graph.eliminate_dead_code()
    made.recompile()
    return made


def with_fake_values(graph_module: fx.GraphModule) -> fx.GraphModule:
    """Put a fake tensor into `meta["val"]` of each node, from the `tensor_meta` of the inputs; return the same graph.

    Inductor's graphs have these values; a graph of torch.fx has `tensor_meta` after shape propagation. Raises
    `CaptureError` for an input without it.
    """
    mode = FakeTensorMode(allow_non_fake_inputs=True)
    inputs = []
    for node in graph_module.graph.find_nodes(op="placeholder"):
        form = node.meta.get("tensor_meta")
        if form is None:
            raise CaptureError(
                f"The input {node.name} has no shape: run `propagate_shapes` on the graph with example inputs first."
            )
        with mode:
            inputs.append(torch.empty_strided(form.shape, form.stride, dtype=form.dtype))
    FakeTensorProp(graph_module, mode).propagate_dont_convert_inputs(*inputs)
    return graph_module


def chain_of(steps: Sequence[str]) -> fx.Graph:
    """Return a graph that calls operators of ATen with one operand one after the other, such as `relu` and `tanh`.

    >>> calls_of(chain_of(["relu", "tanh"]))
    ['relu.default', 'tanh.default']
    """
    graph = fx.Graph()
    value = graph.placeholder("x")
    for step in steps:
        value = graph.call_function(getattr(torch.ops.aten, step).default, (value,))
    graph.output(value)
    return graph


def calls_of(graph: fx.Graph) -> list[str]:
    """Return the calls of a graph in order: each operator, with those arguments that are numbers or lists.

    >>> calls_of(decomposed(torch.nn.functional.silu, [torch.ones(2)]).graph)
    ['neg.default', 'exp.default', 'add.Tensor(1)', 'div.Tensor']
    """
    return [_call(node) for node in graph.nodes if node.op == "call_function"]


def calls_of_chain(graph: fx.Graph) -> list[str]:
    """Return the calls on the way from input to output, where each reads the one before; others are left out.

    Raises RuntimeError, as `Graph.lint` does, if a call stands before one that it reads.

    >>> calls_of_chain(chain_of(["relu", "tanh"]))
    ['relu.default', 'tanh.default']
    """
    graph.lint()
    calls, node = [], graph.output_node().args[0]
    while isinstance(node, fx.Node) and node.op == "call_function":
        calls.append(_call(node))
        node = node.args[0]
    return calls[::-1]


def _call(node: fx.Node) -> str:
    plain = ", ".join(repr(value) for value in node.args if not isinstance(value, fx.Node))
    return str(node.target).removeprefix("aten.") + (f"({plain})" if plain else "")
