"""Read a change of the floating-point type as the value itself: `x.to(torch.float32)` is x, with more digits.

Norms of 16-bit models are written with such casts. A formula is compared without them; which of them an operator makes
itself, `passes/formulas.py` decides.
"""

from inspect import Parameter, Signature
from typing import Any

import torch
from torch import fx
from torch._subclasses.fake_tensor import FakeTensor

from course_lib.fusion.calls import Call, read_call
from course_lib.fusion.operators import Operator

_METHODS = frozenset(("to", "type", "type_as", "float", "half", "bfloat16", "double"))
_FUNCTIONS: tuple[Any, ...] = (
    torch.ops.aten._to_copy.default,
    torch.ops.aten.to.dtype,
    torch.ops.aten.to.dtype_layout,
    torch.ops.prims.convert_element_type.default,
)
_CHECK = torch.ops.aten._assert_tensor_metadata.default
_SIGNATURE = Signature([Parameter("input", Parameter.POSITIONAL_OR_KEYWORD)])
CAST = Operator("cast", _SIGNATURE, torch.Tensor.to, torch.Tensor.to)


def read_value(node: object) -> Call | None:
    """Return the call that a node makes, where a change of type alone is a call of `CAST`."""
    return read_call(node) or _cast(node)


def checks_of(node: fx.Node) -> list[Call]:
    """Return the nodes that check the type of a value, as `torch.export` writes before each cast, as calls."""
    return [Call(user, CAST, {"input": node}) for user in node.users if user.target is _CHECK]


def _cast(node: object) -> Call | None:
    if not isinstance(node, fx.Node) or not node.args or not isinstance(node.args[0], fx.Node):
        return None
    if not (node.op == "call_method" and node.target in _METHODS) and node.target not in _FUNCTIONS:
        return None
    before, after = node.args[0].meta.get("val"), node.meta.get("val")
    if not isinstance(before, FakeTensor) or not isinstance(after, FakeTensor):
        return None
    if not (before.is_floating_point() and after.is_floating_point()) or before.layout != after.layout:
        return None
    same = (before.shape, before.stride(), before.device) == (after.shape, after.stride(), after.device)
    return Call(node, CAST, {"input": node.args[0]}) if same else None
