"""What the calls of a rebuilt graph are: each is named by the entry of the allow-list that the reader put into it.

An answer chooses paths of modules and tensors and names of inputs. None of them says what a node does, so no check may
compare them with the name of an operator.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import torch
from torch import fx

from course_lib.graph.data.targets import function_names


@dataclass(frozen=True)
class OperatorCall:
    """One call of a graph."""

    operator: str
    """What is called: a function such as "torch.ops.aten.mul.Tensor", a method such as "mul_", or the class of a module
    such as "torch.nn.GELU". Functions and classes have a dot in their name, and methods have none."""
    packet: str
    """The same without the overload: "torch.ops.aten.mul"."""
    numbers: tuple[Any, ...]
    """The numbers and flags among its arguments."""

    def is_of(self, name: str) -> bool:
        """Return whether this is a call of the operator `name`, in any overload if the name has none."""
        return name in (self.operator, self.packet)


def read_calls(module: fx.GraphModule, own: Mapping[object, str] = MappingProxyType({})) -> dict[str, OperatorCall]:
    """Return by the name of its node, and in order, what each call of a graph is.

    `module` comes from `course_lib.graph.from_data`, which takes functions and classes from the allow-list only, and
    those of `own`, which this maps to their names.
    """
    return {node.name: _read(module, node, own) for node in module.graph.nodes if node.op.startswith("call_")}


def _read(module: fx.GraphModule, node: fx.Node, own: Mapping[object, str]) -> OperatorCall:
    if node.op == "call_function":
        operator = own[node.target] if node.target in own else function_names()[node.target]
    elif node.op == "call_module":
        operator = f"torch.nn.{type(module.get_submodule(str(node.target))).__name__}"
    else:
        operator = str(node.target)
    overload = node.target._overloadname if isinstance(node.target, torch._ops.OpOverload) else ""
    numbers = (value for value in (*node.args, *node.kwargs.values()) if type(value) in (bool, int, float))
    return OperatorCall(operator, operator.removesuffix(f".{overload}"), tuple(numbers))
