"""Which nodes change a tensor in place.

A graph shows who uses a value, but not when the value changes. Fusing moves a computation to another place in the
order, so a pass must know what lies on the way.
"""

import functools
import inspect
import itertools
import operator
from collections.abc import Iterable, Iterator, Mapping, Sequence

import torch

from course_lib.fusion.owned import module_of

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


class Writers(tuple[torch.fx.Node, ...]):
    """The nodes of a graph that may change a tensor in place, in graph order, and found by the memory they change."""

    attributes: Mapping[object, Sequence[torch.fx.Node]] | None = None  # see `_held_memory`; nodes that name it

    def holders(self, path: str) -> Sequence[torch.fx.Node]:
        """Return the nodes through which a writer could change what a module holds.

        Those that a pass has added since are none of them: what a pass writes changes nothing.
        """
        if self.attributes is None:
            self.attributes = _attributes(self[0].graph) if self else {}
        return self.attributes.get(_held_memory(self[0].graph, path), ()) if self else ()

    @functools.cached_property
    def _by_memory(self) -> Mapping[int | None, Sequence[int]]:
        """Positions of writers by the memory that they may change; None is memory that is not known."""
        found: dict[int | None, list[int]] = {}
        for position, node in enumerate(self):
            for memory in {_memory(changed) for changed in _changed(node)}:
                found.setdefault(memory, []).append(position)
        return found

    def changing(self, tensors: Iterable[torch.fx.Node]) -> Iterator[torch.fx.Node]:
        """Yield the writers that may change one of `tensors`, also through a view, in graph order."""
        memories = {_memory(tensor) for tensor in tensors} if self else set()
        if memories:
            wanted = self._by_memory.keys() if None in memories else memories | {None}
            positions = itertools.chain(*(self._by_memory.get(memory, ()) for memory in wanted))
            yield from (self[position] for position in sorted(set(positions)))


def mutations_of(
    tensors: Sequence[torch.fx.Node], *, after: torch.fx.Node, among: Sequence[torch.fx.Node] | None = None
) -> list[torch.fx.Node]:
    """Return the nodes after `after` that may change the memory of one of `tensors`, also through a view.

    Whoever asks often gives `among`, the result of `mutating_nodes`, so that the graph need not be searched again.
    """
    writers = mutating_nodes(after.graph) if among is None else among
    indexed = writers if isinstance(writers, Writers) else Writers(writers)
    return [node for node in indexed.changing(tensors) if after < node]


def mutating_nodes(graph: torch.fx.Graph) -> Writers:
    """Return the nodes that may change a tensor in place."""
    writers = Writers(node for node in graph.nodes if mutates(node))
    writers.attributes = _attributes(graph) if writers else {}
    return writers


def _attributes(graph: torch.fx.Graph) -> Mapping[object, Sequence[torch.fx.Node]]:
    found: dict[object, list[torch.fx.Node]] = {}
    for node in graph.find_nodes(op="get_attr"):
        found.setdefault(_held_memory(graph, str(node.target)), []).append(node)
    return found


def _held_memory(graph: torch.fx.Graph, path: str) -> object:
    """Return the memory of what a module holds, which is the same under two names if it is tied; else the name."""
    value: object = graph.owning_module
    for part in path.split("."):
        value = getattr(value, part, None)
    return value.untyped_storage()._cdata if isinstance(value, torch.Tensor) else path


def may_share_memory(a: torch.fx.Node, b: torch.fx.Node) -> bool:
    """Return False if the two values surely lie in different memory.

    That is known after `course_lib.graph.propagate_shapes`: fake tensors share their storage where real ones would.
    """
    first, second = _memory(a), _memory(b)
    return first is None or second is None or first == second


def _memory(node: torch.fx.Node) -> int | None:
    value = node.meta.get("val")
    return int(value.untyped_storage()._cdata) if isinstance(value, torch.Tensor) else None


def _changed(node: torch.fx.Node) -> list[torch.fx.Node]:
    """Return the operands that a mutating node may write to."""
    out = node.kwargs.get("out")
    if isinstance(out, torch.fx.Node):
        return [out]
    known = node.op != "call_module" or not _is_foreign(node)
    return [node.args[0]] if known and node.args and isinstance(node.args[0], torch.fx.Node) else node.all_input_nodes


def _module_mutates(node: torch.fx.Node) -> bool:
    return _is_foreign(node) or bool(getattr(module_of(node), "inplace", False))


def _is_foreign(node: torch.fx.Node) -> bool:
    # torch.export's guards only look at the inputs, and our own modules wrap operators that change nothing.
    return not type(module_of(node)).__module__.startswith(("torch.nn.", "torch.export.", "course_lib.fusion."))


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
