"""Facts about the operands of a match that are known without running the graph: shapes, dtypes, numbers."""

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from operator import attrgetter

import torch
from torch import fx

from course_lib.fusion.calls import ModuleAttribute, module_of
from course_lib.fusion.effects import memory_of
from course_lib.fusion.inserted_modules import Constant
from course_lib.fusion.matching import Match
from course_lib.fusion.rules import Objection
from course_lib.fusion.storage import mutating_nodes
from course_lib.graph.memory import storage_of

CONSTANT = "constant"  # metadata key of a node of a tensor: whether it has the same value in each run
SYMBOLIC = "symbolic"  # metadata key of a node whose shape may change in each run
# Names in torch.fx and torch.export of a tensor that the program makes in each run, such as `torch.tensor(2.0)`.
_MADE_WHILE_TRACING = re.compile(r"(.*\.)?(_tensor_constant|lifted_tensor_|_lifted_tensor_constant)\d+")


@dataclass(frozen=True)
class TensorFacts:
    """Shape and dtype of a tensor."""

    shape: tuple[int, ...]
    dtype: torch.dtype


def tensor_facts(node: fx.Node) -> TensorFacts | None:
    """Return shape and dtype of the result of `node`, or None if they are unknown or it is no single tensor.

    All results are known once `course_lib.graph.propagate_shapes` has run, and parameters always. A symbolic size
    counts as unknown, because reading it would fix its value. A size that was symbolic before counts as unknown too,
    see `remember_symbols`.
    """
    if SYMBOLIC in node.meta:
        return None
    value = node.meta.get("val", node.meta.get("tensor_meta"))
    owner = node.graph.owning_module
    if value is None and node.op == "get_attr" and owner is not None:
        value = attrgetter(str(node.target))(owner)
    shape, dtype = getattr(value, "shape", None), getattr(value, "dtype", None)
    if not isinstance(dtype, torch.dtype) or shape is None or not all(type(size) is int for size in shape):
        return None
    return TensorFacts(tuple(shape), dtype)


def remember_symbols(graph: fx.Graph) -> None:
    """Mark the nodes with symbolic sizes, before example inputs replace the symbols by numbers."""
    for node in graph.nodes:
        leaves = torch.utils._pytree.tree_leaves(node.meta.get("val"))
        if any(isinstance(size, torch.SymInt) for leaf in leaves for size in (leaf, *getattr(leaf, "shape", ()))):
            node.meta[SYMBOLIC] = True


def attribute_of(match: Match, attribute: ModuleAttribute) -> object:
    """Return the current value of an attribute of a module of the graph."""
    owner = match.anchor.graph.owning_module
    assert owner is not None, "a pass works on the graph of a GraphModule"
    return attrgetter(attribute.path)(owner)


def facts_of_operand(match: Match, value: fx.Node | ModuleAttribute) -> TensorFacts | None:
    """Return shape and dtype of a node's result or of a module's attribute, or None if they are not known."""
    if isinstance(value, fx.Node):
        return tensor_facts(value)
    tensor = attribute_of(match, value)
    return TensorFacts(tuple(tensor.shape), tensor.dtype) if isinstance(tensor, torch.Tensor) else None


TensorOperands = Mapping[str, TensorFacts]  # by the names that the pattern has for them


def tensor_operands(match: Match, *names: str) -> TensorOperands | Objection:
    """Return the facts of the named operands, or an objection if one is no tensor or its shape is unknown."""
    facts: dict[str, TensorFacts] = {}
    for name in names:
        value = match[name]
        if not isinstance(value, (fx.Node, ModuleAttribute)):
            return Objection("bias shape" if name == "bias" else "shape", f"{name} is {value!r}, which is no tensor")
        if isinstance(value, fx.Node) and type(value.meta.get("val")) in (int, float, bool, str):
            return Objection("bias shape" if name == "bias" else "shape", f"{name} is {value}, which is no tensor")
        known = facts_of_operand(match, value)
        if known is None:
            return Objection("shape unknown", _why_unknown(value))
        facts[name] = known
    return facts


def _why_unknown(value: fx.Node | ModuleAttribute) -> str:
    if isinstance(value, fx.Node) and SYMBOLIC in value.meta:
        return f"{value} has another shape in each run"
    return f"the shape of {value} is not known; run propagate_shapes(gm, example_inputs) first"


def is_bias_of(bias: TensorFacts, x: TensorFacts) -> bool:
    """Return whether `bias` has one dimension, which is the last one of `x`."""
    return len(bias.shape) == 1 and len(x.shape) >= 1 and x.shape[-1] == bias.shape[0]


def one_dtype(operands: TensorOperands) -> Objection | None:
    """Refuse operands of several dtypes, or of a dtype that is not floating-point: no fused operator promotes types."""
    dtypes = {name: facts.dtype for name, facts in operands.items()}
    if len(set(dtypes.values())) == 1 and next(iter(dtypes.values())).is_floating_point:
        return None
    listed = ", ".join(f"{name} is {dtype}" for name, dtype in dtypes.items())
    return Objection("dtype", f"{listed}; the fused operator takes one floating-point dtype")


def normalises_last_dimension(match: Match) -> Objection | None:
    """Refuse a LayerNorm without weight or bias, or one that normalises more than the last dimension of `residual`.

    The pattern calls its operands `normalized_shape`, `weight`, `layer_norm_bias` and `eps`.
    """
    if match["weight"] is None or match["layer_norm_bias"] is None:
        return Objection("affine", f"{match.anchor} has no weight or no bias, and the fused operator takes both")
    if type(match["eps"]) not in (int, float):
        return Objection("argument", f"{match.anchor} takes eps from {match['eps']!r}, unknown until it runs")
    operands = tensor_operands(match, "x", "residual", "weight", "layer_norm_bias")
    if isinstance(operands, Objection):
        return operands
    shape = operands["residual"].shape
    if operands["x"].shape != shape:
        reason = f"{match['x']} has shape {operands['x'].shape} and {match['residual']} has shape {shape}"
        return Objection("shape", f"{reason}; the fused operator does not broadcast one over the other")
    if not shape or shape[-1] == 0 or operands["weight"].shape != shape[-1:]:
        reason = f"{match.anchor} normalises over {match['normalized_shape']!r} of {shape}"
        return Objection("shape", f"{reason}; the fused operator over the last dimension, of at least one element")
    return one_dtype(operands)


def number_of(value: object) -> float | None:
    """Return the value of an argument that is a constant number, or None for any other argument.

    The number may be a literal, a size (`x.shape[-1]`, if shapes are known), or a tensor without dimensions that the
    program computes: `torch.sqrt(torch.tensor(2.0))`. Parameters and buffers are not constant, nor is a tensor that
    any node writes, nor a size that is symbolic.
    """
    number = constant_number(value)
    return number if number is not None and math.isfinite(number) else None


def constant_number(value: object) -> float | None:
    """Return the value of an argument that is a constant number, as `number_of` does, also infinity and NaN."""
    if isinstance(value, fx.Node):
        if SYMBOLIC in value.meta:
            return None  # another number in each run
        held = _constant_of(value)
        if isinstance(held, torch.Tensor) and held.ndim == 0 and not held.requires_grad and not held.is_complex():
            value = held.item()
        else:
            value = value.meta.get("val")
    return float(value) if type(value) in (int, float) else None  # type: ignore[arg-type]  # now a number


def _constant_of(node: fx.Node) -> object:
    """Return the constant tensor of a node, or None if its result is not constant."""
    owner = node.graph.owning_module
    if node.op == "call_module" and isinstance(module := module_of(node), Constant):
        return module()
    if node.op != "get_attr" or owner is None or not _MADE_WHILE_TRACING.fullmatch(str(node.target)):
        return None
    if CONSTANT not in node.meta:  # a write anywhere in the graph changes it for the nodes before, in the next run
        node.meta[CONSTANT] = not list(mutating_nodes(node.graph).changing(memory_of(node)))
    return attrgetter(str(node.target))(owner) if node.meta[CONSTANT] else None


def forget_constants(graph: fx.Graph, state: Mapping[str, torch.Tensor]) -> None:
    """Mark the nodes of tensors that belong to the state of the program as not constant, whatever their names.

    A view of a parameter or buffer belongs to it too: a checkpoint changes its numbers.
    """
    storages = set(map(storage_of, state.values()))
    owner = graph.owning_module
    for node in graph.find_nodes(op="get_attr"):
        held = attrgetter(str(node.target))(owner)
        if str(node.target) in state or (isinstance(held, torch.Tensor) and storage_of(held) in storages):
            node.meta[CONSTANT] = False


def is_made_while_tracing(path: str) -> bool:
    """Return whether a tensor of a graph has a name that a tracer gave it."""
    return _MADE_WHILE_TRACING.fullmatch(path) is not None
