"""Name what a node calls, with the same name in tables, drawings, counts and data."""

import collections
from typing import Any

import torch

from course_lib.graph.data.targets import function_names


def operator_name(node: torch.fx.Node) -> str:
    """Return the name of what a node calls.

    Functions have their public name ("torch.nn.functional.gelu", "operator.add"), methods begin with "Tensor.", and
    modules have the name of their class ("torch.nn.Linear"). Inputs, parameters and the output have the name of
    their kind.
    """
    if node.op == "call_function":
        return function_names().get(node.target) or _qualified(node.target)
    if node.op == "call_method":
        return f"Tensor.{node.target}"
    if node.op == "call_module":
        return _class_name(_owner(node).get_submodule(str(node.target)))
    return {"placeholder": "input", "get_attr": "parameter", "output": "output"}[node.op]


def _owner(node: torch.fx.Node) -> torch.nn.Module:
    owner = node.graph.owning_module
    assert owner is not None, "the graph of a GraphModule knows its module"
    return owner


def _class_name(module: torch.nn.Module) -> str:
    cls = type(module)
    return f"torch.nn.{cls.__name__}" if cls.__module__.startswith("torch.nn.modules.") else cls.__qualname__


def _qualified(function: Any) -> str:
    if isinstance(function, (torch._ops.OpOverload, torch._ops.OpOverloadPacket)):
        return f"torch.ops.{function}"
    name = getattr(function, "__qualname__", None) or getattr(function, "__name__", None) or type(function).__name__
    module = getattr(function, "__module__", None)
    return f"{module}.{name}" if module and module != "__main__" else name


def count_operators(gm: torch.fx.GraphModule) -> dict[str, int]:
    """Return how many nodes call each function, method or module, by name in alphabetical order.

        >>> count_operators(torch.fx.symbolic_trace(lambda x: torch.relu(x) + x))
        {'operator.add': 1, 'torch.relu': 1}

    Inputs, parameters and the output are not counted. Names are those of `operator_name`.
    """
    calls = (node for node in gm.graph.nodes if node.op.startswith("call_"))
    return dict(sorted(collections.Counter(operator_name(node) for node in calls).items()))
