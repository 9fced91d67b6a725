"""Write a graph module as data; see `course_lib.graph.data` for the format."""

from collections.abc import Mapping
from typing import Any

import torch
from torch.fx.graph import CodeGen

from course_lib.graph.data.arguments import check_name, check_path, refuse, shown, write_value
from course_lib.graph.data.modules import tensors_of, write_module
from course_lib.graph.data.targets import METHODS, function_names
from course_lib.module_hooks import has_hooks


class GraphWriter:
    """Write the nodes of one graph module, the modules that they call and the tensors that they read."""

    def __init__(self, gm: torch.fx.GraphModule, own: Mapping[Any, str]) -> None:
        """Refuse a module whose behaviour differs from its graph, for example because of hooks."""
        if not isinstance(gm, torch.fx.GraphModule):
            refuse("to_data", f"it was given {shown(gm)} and expects a torch.fx.GraphModule; capture a graph first")
        if has_hooks(gm):
            refuse("to_data", "the graph module has hooks, which are no part of its graph; remove them first")
        if type(gm.graph._codegen) is not CodeGen:  # private; a test notices if it moves
            refuse("to_data", "the graph flattens its inputs or outputs; capture it with plain tensors as inputs")
        self._gm = gm
        self._functions = {**own, **function_names()}
        self.modules: dict[str, dict[str, object]] = {}
        self.entries: dict[str, dict[str, object]] = {}
        self.tensors: dict[str, torch.Tensor] = {}
        self._first_path: dict[int, str] = {}

    def write_node(self, node: torch.fx.Node) -> dict[str, object]:
        """Return one node as data, and note the module it calls or the tensor it reads."""
        where = f"Node {node.name!r}"
        check_name(node.name, where)
        return {
            "name": node.name,
            "op": node.op,
            "target": self._target(node, where),
            "args": [write_value(arg, where) for arg in node.args],
            "kwargs": {check_name(key, where): write_value(value, where) for key, value in node.kwargs.items()},
        }

    def _target(self, node: torch.fx.Node, where: str) -> str:
        if node.op == "call_function":
            return self._function(node.target, where)
        target = str(node.target)
        if node.op == "call_method" and target not in METHODS:
            refuse(where, f"it calls the method {shown(target)}, which a graph written as data may not call")
        if node.op == "call_module":
            self._add_module(check_path(target, where), where)
        if node.op == "get_attr":
            self._add_tensor(check_path(target, where), self._attribute(target, where), where)
        return target

    def _function(self, target: object, where: str) -> str:
        try:
            return self._functions[target]
        except (KeyError, TypeError):  # unknown, or not hashable
            name = getattr(target, "__name__", type(target).__name__)
            refuse(
                where,
                f"it calls {shown(str(name))}, which is not among the functions that a graph may call. "
                f"{_instead(str(name))}",
            )

    def _attribute(self, path: str, where: str) -> object:
        value: object = self._gm
        for part in path.split("."):
            if not hasattr(value, part):
                refuse(where, f"the graph module has nothing at {shown(path)}")
            value = getattr(value, part)
        return value

    def _add_module(self, path: str, where: str) -> None:
        if path in self.modules:
            return
        module = self._attribute(path, where)
        self.modules[path] = write_module(module, where)
        assert isinstance(module, torch.nn.Module)
        for name, tensor in tensors_of(module).items():
            self._add_tensor(f"{path}.{name}", tensor, where)

    def _add_tensor(self, path: str, tensor: object, where: str) -> None:
        if path in self.entries:
            return
        if type(tensor) not in (torch.Tensor, torch.nn.Parameter) or not isinstance(tensor, torch.Tensor):
            refuse(where, f"it reads {shown(tensor)} at {shown(path)}; only plain tensors can be written")
        parameter = type(tensor) is torch.nn.Parameter
        if tensor.layout is not torch.strided or (tensor.requires_grad and not parameter):
            refuse(where, f"the tensor at {shown(path)} is sparse, or requires a gradient without being a parameter")
        entry: dict[str, object] = {"parameter": parameter}
        if parameter and not tensor.requires_grad:
            entry["requires_grad"] = False
        if id(tensor) in self._first_path:
            entry["same_as"] = self._first_path[id(tensor)]
        else:
            self._first_path[id(tensor)] = path
            self.tensors[path] = tensor.detach()
        self.entries[path] = entry


def to_data(
    gm: torch.fx.GraphModule, *, own: Mapping[Any, str] | None = None
) -> tuple[dict[str, object], dict[str, torch.Tensor]]:
    """Return the graph of `gm` as JSON values, and its tensors by path.

    The tensors are detached, and share their memory with those of `gm`. The same graph gives equal data each time.
    `own` names functions that are not on the allow-list; such a name begins with "own.".
    Raises `GraphError`, naming the node, for functions, modules or arguments that are not on the allow-list.
    """
    writer = GraphWriter(gm, own or {})
    data = {
        "nodes": [writer.write_node(node) for node in gm.graph.nodes],
        "modules": writer.modules,
        "tensors": writer.entries,
        "training": gm.training,
    }
    return data, writer.tensors


def _instead(function: str) -> str:
    if function.partition(".")[0] in ("item", "_local_scalar_dense"):
        return "It makes a number of Python, as float(), int() and bool() of a tensor do: keep the tensor"
    return "Write it with others: `course_lib.graph.data.targets.functions()` has their names"
