"""Which nodes change a tensor in place.

A graph shows who uses a value, but not when the value changes. Fusing moves a computation to another place in the
order, so a pass must know what lies on the way.
"""

import functools
import inspect
import operator
from collections.abc import Sequence

import torch

from course_lib.errors import FusionError

_INPLACE_OPERATORS = frozenset({"setitem", "delitem"})
_INPLACE_METHODS = frozenset(
    """
    __setitem__ __delitem__ __iadd__ __isub__ __imul__ __itruediv__ __ifloordiv__ __imod__ __ipow__ __iand__ __ior__
    __ixor__
    """.split()  # noqa: SIM905  # a list of so many names reads best as a block
)


def mutates(node: torch.fx.Node) -> bool:
    """Return whether running `node` may change a tensor that another node holds.

    Recognised are methods and functions whose name ends in an underscore, `+=` and its like, item assignment,
    `out=`, `inplace=True` in any spelling, operators whose schema says so, and modules set to work in place. A
    module from outside torch.nn may do anything, so it counts as changing its inputs.
    """
    if node.kwargs.get("out") is not None:
        return True
    if node.op == "call_method":
        name = str(node.target)
        return name in _INPLACE_METHODS or (name.endswith("_") and not name.endswith("__"))
    if node.op == "call_module":
        return _module_mutates(node)
    return node.op == "call_function" and _function_mutates(node)


def mutations_of(
    tensors: Sequence[torch.fx.Node], *, after: torch.fx.Node, among: Sequence[torch.fx.Node] | None = None
) -> list[torch.fx.Node]:
    """Return the nodes after `after` that may change the memory of one of `tensors`, also through a view.

    Whoever asks often gives `among`, the result of `mutating_nodes`, so that the graph need not be searched again.
    """
    writers = mutating_nodes(after.graph) if among is None else among
    return [
        node
        for node in writers
        if after < node and any(may_share_memory(a, b) for a in _changed(node) for b in tensors)
    ]


def mutating_nodes(graph: torch.fx.Graph) -> list[torch.fx.Node]:
    """Return the nodes that may change a tensor in place, in graph order."""
    return [node for node in graph.nodes if mutates(node)]


def may_share_memory(a: torch.fx.Node, b: torch.fx.Node) -> bool:
    """Return False if the two values surely lie in different memory.

    That is known after `course_lib.graph.propagate_shapes`: fake tensors share their storage where real ones would.
    """
    first, second = a.meta.get("val"), b.meta.get("val")
    if isinstance(first, torch.Tensor) and isinstance(second, torch.Tensor):
        return first.untyped_storage()._cdata == second.untyped_storage()._cdata
    return True


def _changed(node: torch.fx.Node) -> list[torch.fx.Node]:
    """Return the operands that a mutating node may write to."""
    out = node.kwargs.get("out")
    if isinstance(out, torch.fx.Node):
        return [out]
    known = node.op != "call_module" or not _is_foreign(node)
    return [node.args[0]] if known and node.args and isinstance(node.args[0], torch.fx.Node) else node.all_input_nodes


def _module_mutates(node: torch.fx.Node) -> bool:
    return _is_foreign(node) or bool(getattr(_module(node), "inplace", False))


def _is_foreign(node: torch.fx.Node) -> bool:
    # torch.export's guards only look at the inputs, and our own modules wrap operators that change nothing.
    return not type(_module(node)).__module__.startswith(("torch.nn.", "torch.export.", "course_lib.fusion."))


def _module(node: torch.fx.Node) -> torch.nn.Module:
    owner = node.graph.owning_module
    if owner is None:
        raise FusionError(f"The graph of {node} belongs to no GraphModule, so its module {node.target} is unknown.")
    return owner.get_submodule(str(node.target))


def _function_mutates(node: torch.fx.Node) -> bool:
    target = node.target
    if isinstance(target, torch._ops.OpOverload):
        return bool(target._schema.is_mutable)
    if isinstance(target, torch._ops.OpOverloadPacket):
        return any(getattr(target, overload)._schema.is_mutable for overload in target.overloads())
    name, module = getattr(target, "__name__", ""), getattr(target, "__module__", "")
    if module == "_operator":
        # `iadd` is the in-place `add`, and `iand` that of `and_`; `index` and `invert` only begin with the same letter.
        plain = name.removeprefix("i")
        in_place = plain != name and (hasattr(operator, plain) or hasattr(operator, f"{plain}_"))
        return in_place or name in _INPLACE_OPERATORS
    return (name.endswith("_") and not name.endswith("__")) or _given(node, "inplace")


def _given(node: torch.fx.Node, parameter: str) -> bool:
    """Return whether a call gives `parameter` a value other than False, by name or by position."""
    position = _position(node.target, parameter)
    if position is not None and position < len(node.args):
        return bool(node.args[position])
    return bool(node.kwargs.get(parameter, False))


@functools.cache
def _position(function: object, parameter: str) -> int | None:
    """Return at which position a function takes `parameter`, or None if it takes it by name or not at all."""
    try:
        names = list(inspect.signature(function).parameters)  # type: ignore[arg-type]  # what is no function raises
    except (TypeError, ValueError):  # a builtin without a signature; those have no such parameter but by name
        return None
    return names.index(parameter) if parameter in names else None
