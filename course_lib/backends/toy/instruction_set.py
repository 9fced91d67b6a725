"""The ATen operators that the toy machine takes, and their instructions: elementwise, reductions, matrix products.

Views need no instructions: they only change how later instructions access memory.
"""

from collections.abc import Mapping
from enum import Enum

import torch
from torch import fx

from course_lib.backends.support import (
    Condition,
    Support,
    argument,
    argument_is,
    dtypes,
    gives_a_tensor,
    keeps_dtype,
    one_dtype,
    rank_at_most,
    target_name,
    tensor_of,
)
from course_lib.fusion import Objection
from course_lib.machine import Immediate


class Kind(Enum):
    """The kinds of operators, by what they are compiled to."""

    ELEMENTWISE = "elementwise"
    REDUCTION = "reduction"
    MATMUL = "matmul"
    CONSTANT = "constant"
    VIEW = "view"


FLOATS = (torch.float32, torch.float64, torch.bfloat16, torch.float16)
NUMBERS = (*FLOATS, torch.int64, torch.int32)
ALL = (*NUMBERS, torch.bool)

UNARY = {
    "aten.neg": "neg", "aten.abs": "abs", "aten.sign": "sign", "aten.exp": "exp", "aten.log": "log",
    "aten.sqrt": "sqrt", "aten.rsqrt": "rsqrt", "prims.rsqrt": "rsqrt", "aten.reciprocal": "recip",
    "aten.tanh": "tanh", "aten.sigmoid": "sigmoid", "aten.erf": "erf", "aten.sin": "sin", "aten.cos": "cos",
}  # fmt: skip
BINARY = {
    "aten.add": "add", "aten.sub": "sub", "aten.mul": "mul", "aten.div": "div", "aten.pow": "pow",
    "aten.maximum": "max", "aten.minimum": "min", "aten.clamp_min": "max", "aten.clamp_max": "min",
}  # fmt: skip
NUMBER_FIRST = ("aten.add", "aten.sub", "aten.mul")  # 1 - x is one instruction, 1 / x is none
COMPARISONS = {f"aten.{name}": name for name in ("lt", "le", "gt", "ge", "eq", "ne")}
LOGIC = {"aten.logical_and": "and", "aten.logical_or": "or", "aten.logical_not": "not"}
COPIES = {"aten.clone": "copy", "aten._to_copy": "copy", "prims.convert_element_type": "copy"}
INSTRUCTIONS: Mapping[str, str] = {
    **UNARY, **BINARY, **COMPARISONS, **LOGIC, **COPIES, "aten.relu": "max", "aten.where": "select",
}  # fmt: skip
REDUCTIONS: Mapping[str, str] = {"aten.sum": "sum.row", "aten.amax": "max.row", "aten.amin": "min.row"}
MATMULS = ("aten.mm", "aten.bmm")
SPLIT_MATMUL = torch.ops.aten.matmul.default  # what `views.py` makes of a product whose first dimension is split
CONSTANTS = ("aten.full", "aten.scalar_tensor")
VIEWS = (
    "aten.view", "aten._unsafe_view", "aten.permute", "aten.transpose", "aten.t", "aten.expand", "aten.unsqueeze",
    "aten.squeeze", "aten.slice", "aten.select", "aten.alias", "aten.detach", "aten.diagonal",
)  # fmt: skip


def condition_reads_a_mask(node: fx.Node) -> Objection | None:
    """Require that `where` has a boolean mask, and operands of the result's type with at most one number."""
    mask, *choices = node.args
    facts, result = (tensor_of(mask) if isinstance(mask, fx.Node) else None), tensor_of(node)
    if facts is None or facts.dtype != torch.bool:
        return Objection("dtype", f"{node} chooses by {mask}, which is no boolean tensor")
    given = [tensor_of(choice) for choice in choices if isinstance(choice, fx.Node)]
    if not given or any(known is None or result is None or known.dtype != result.dtype for known in given):
        return Objection("mixed dtypes", f"{node} chooses between tensors that have not the type of the result")
    return None


def stays_on_device(node: fx.Node) -> Objection | None:
    """Return an objection if a conversion also changes the device, else None."""
    value, source = node.meta["val"], node.all_input_nodes[0].meta["val"]
    if value.device != source.device:
        return Objection("device", f"{node} copies from {source.device} to {value.device}")
    return None


def fills_with_a_number(node: fx.Node) -> Objection | None:
    """Require that a constant is one number that is known at compile time."""
    value = _filling(node)
    if isinstance(value, (bool, int, float)):
        return None
    return Objection("argument", f"{node} is filled with {value}, unknown until it runs")


def reads_a_tensor(node: fx.Node) -> Objection | None:
    """Require tensors and plain numbers as operands; the first is a tensor unless the instruction takes numbers."""
    name = target_name(node)
    operands = node.args[: 2 if name in (*BINARY, *COMPARISONS) else 1]
    tensors = [isinstance(value, fx.Node) and tensor_of(value) is not None for value in operands]
    if not any(tensors) or not (tensors[0] or name in NUMBER_FIRST):
        return Objection("argument", f"{node} has {operands[0]} as its first operand, which is no tensor")
    strange = [value for value in operands if not isinstance(value, (fx.Node, bool, int, float))]
    if strange:
        return Objection("argument", f"{node} has {strange[0]} as an operand, which is no tensor and no number")
    return None


def number_of(node: fx.Node) -> Immediate:
    """Return the number that a constant is filled with."""
    value = _filling(node)
    assert isinstance(value, (bool, int, float)), "other constants were refused"
    return value


def matrices_of(node: fx.Node) -> tuple[fx.Node, fx.Node]:
    """Return the two operands of a matrix product, which may be the same node."""
    left, right = node.args
    assert isinstance(left, fx.Node), "matrices are tensors"
    assert isinstance(right, fx.Node), "matrices are tensors"
    return left, right


def kind_of(node: fx.Node) -> Kind:
    """Return the kind of a node whose operator the machine takes."""
    name = target_name(node)
    if name in VIEWS:
        return Kind.VIEW
    if name in REDUCTIONS:
        return Kind.REDUCTION
    if name in MATMULS or node.target is SPLIT_MATMUL:
        return Kind.MATMUL
    return Kind.CONSTANT if name in CONSTANTS else Kind.ELEMENTWISE


def operands_of(node: fx.Node) -> list[fx.Node | Immediate]:
    """Return the operands of an elementwise node as its instruction has them."""
    name = target_name(node)
    count = {"copy": 1, "select": 3}.get(INSTRUCTIONS[name], 1 if name in UNARY or name == "aten.logical_not" else 2)
    if name == "aten.relu":
        return [node.args[0], 0]  # type: ignore[list-item]  # the operand is a node
    return [_number_or_node(value) for value in node.args[:count]]


def reduced_dimensions(node: fx.Node) -> tuple[int, ...]:
    """Return the dimensions that a reduction runs over, counted from the front; all if it names none."""
    source = node.all_input_nodes[0].meta["val"]
    declared = argument(node, "dim")
    dims = [declared] if isinstance(declared, int) else list(declared or [])  # type: ignore[call-overload]
    rank = source.dim()
    return tuple(sorted({dim % rank for dim in dims})) if dims and rank else tuple(range(rank))


def _filling(node: fx.Node) -> object:
    return argument(node, "fill_value" if target_name(node) == "aten.full" else "s")


def _number_or_node(value: object) -> fx.Node | Immediate:
    """Return a number for a node that gives one: sizes are known when a part is compiled."""
    if isinstance(value, fx.Node) and isinstance(value.meta.get("val"), (bool, int, float)):
        return value.meta["val"]
    assert isinstance(value, (fx.Node, bool, int, float)), "an elementwise operand is a tensor or a number"
    return value


def _table() -> dict[str, tuple[Condition, ...]]:
    numbers: tuple[Condition, ...] = (reads_a_tensor, one_dtype, keeps_dtype, dtypes(*NUMBERS))
    floats: tuple[Condition, ...] = (reads_a_tensor, one_dtype, keeps_dtype, dtypes(*FLOATS))
    no_factor = argument_is("alpha", 1)
    return {
        **dict.fromkeys(UNARY, floats),
        **dict.fromkeys(BINARY, numbers),
        **dict.fromkeys(COMPARISONS, (reads_a_tensor, one_dtype, dtypes(*ALL))),
        **dict.fromkeys(LOGIC, (dtypes(torch.bool),)),
        **dict.fromkeys(COPIES, (stays_on_device, dtypes(*ALL))),
        **dict.fromkeys((*REDUCTIONS, *MATMULS), floats),
        **dict.fromkeys(CONSTANTS, (fills_with_a_number, dtypes(*ALL))),
        **dict.fromkeys(VIEWS, (dtypes(*ALL),)),
        "aten.add": (*numbers, no_factor),
        "aten.sub": (*numbers, no_factor),
        "aten.div": (*floats, argument_is("rounding_mode", None)),
        "aten.pow": floats,
        "aten.relu": numbers,
        "aten.where": (condition_reads_a_mask, dtypes(*ALL)),
    }


SUPPORT = Support(_table(), always=(gives_a_tensor, rank_at_most(8)))
