"""Move views to where they cost nothing: before the operators that they would separate.

A linear layer on (batch, sequence, width) arrives as a matrix product on (batch · sequence, width) and a view of its
result. Later operators work on the shape after the view, so they could not share a launch with the product. But
splitting the first dimension of the operands also splits it in the result, and a view of a tensor in memory is only
another access to it. The same holds for a view that adds a dimension of size 1.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import torch
from torch import fx

from course_lib.backends.support import argument, target_name
from course_lib.backends.toy.instruction_set import SPLIT_MATMUL, VIEWS, Kind, kind_of, matrices_of, reduced_dimensions

Shape = tuple[int, ...]
aten = torch.ops.aten
RESHAPES = ("aten.view", "aten._unsafe_view", "aten.unsqueeze", "aten.squeeze")
KEEPING = {"aten.sum": aten.sum.dim_IntList, "aten.amax": aten.amax.default, "aten.amin": aten.amin.default}


def with_cheap_views(part: fx.GraphModule) -> fx.GraphModule:
    """Return a copy of `part` with the same results, in which views stand where they cost nothing if possible.

    The tensor shapes must be known: each node of `part` needs its `meta["val"]`.
    """
    return without_renames(with_early_views(with_kept_dimensions(without_renames(part))))


def without_renames(part: fx.GraphModule) -> fx.GraphModule:
    """Return the same graph without sequences of views that return their operand, such as a single `detach`."""
    graph = _copy(part)
    for node in graph.nodes:
        if _is(node, *VIEWS):
            before = next((value for value in _chain(node) if _alike(node, value)), None)
            if before is not None:
                node.replace_all_uses_with(before)
    return _finished(part, graph)


def with_kept_dimensions(part: fx.GraphModule) -> fx.GraphModule:
    """Return a graph in which reductions keep reduced dimensions with size 1, and a view removes them.

    A register keeps them anyway. If the next view restores them, as in normalisations of channels, both views are
    removed in the end.
    """
    graph = _copy(part)
    for node in list(graph.nodes):
        if node.op == "call_function" and kind_of(node) is Kind.REDUCTION and not argument(node, "keepdim"):
            source, dims = node.all_input_nodes[0].meta["val"], reduced_dimensions(node)
            shape = tuple(1 if dim in dims else size for dim, size in enumerate(source.shape))
            new = _insert(node, KEEPING[target_name(node)], (node.args[0], list(dims), True), {})
            new.meta = {"val": source.new_empty(shape, dtype=node.meta["val"].dtype)}
            node.replace_all_uses_with(_viewed(node, new, new.meta["val"].view(node.meta["val"].shape)))
    return _finished(part, graph)


def with_early_views(part: fx.GraphModule) -> fx.GraphModule:
    """Return a graph that computes the same, in which some views come as early as possible.

    A view that splits the first dimension, or adds one of size 1, moves before an elementwise operator whose result
    no other node reads; one that splits the first dimension also moves before a matrix product.
    """
    graph = _copy(part)
    for node in list(graph.nodes):
        _move_up(node)
    return _finished(part, graph)


def _copy(part: fx.GraphModule) -> fx.Graph:
    graph = fx.Graph()
    graph.output(graph.graph_copy(part.graph, {}))
    return graph


def _finished(part: fx.GraphModule, graph: fx.Graph) -> fx.GraphModule:
    graph.eliminate_dead_code()
    graph.lint()
    return fx.GraphModule(part, graph, class_name="Part")


def _is(node: fx.Node, *names: str) -> bool:
    return node.op == "call_function" and target_name(node) in names


def _chain(view: fx.Node) -> Iterator[fx.Node]:
    """Yield the operand of a view; if the view only regroups all elements, also the operand of that one, and so on."""
    yield view.all_input_nodes[0]
    while _is(view, *RESHAPES):
        view = view.all_input_nodes[0]
        yield view


def _alike(view: fx.Node, other: fx.Node) -> bool:
    """Tell whether two values have the same elements in the same places; the first is a view of the second."""
    new, old = view.meta["val"], other.meta["val"]
    strides = [
        [stride for size, stride in zip(value.shape, value.stride(), strict=True) if size != 1] for value in (new, old)
    ]  # the stride of a dimension of size 1 has no effect
    return bool(new.shape == old.shape and new.storage_offset() == old.storage_offset() and strides[0] == strides[1])


def _move_up(view: fx.Node) -> None:
    """Move a view before its operand, and the views that this creates before theirs."""
    move = _move_of(view)
    if move is None:
        return
    made = view.all_input_nodes[0]
    if len(made.users) != 1 or made.op != "call_function":
        return
    if kind_of(made) is Kind.ELEMENTWISE:
        rank = made.meta["val"].dim()
        new = _insert(view, made.target, tuple(move(operand, rank) for operand in made.args), made.kwargs)
    elif kind_of(made) is Kind.MATMUL and isinstance(move, _Split) and made.target is not SPLIT_MATMUL:
        left, right = matrices_of(made)
        matrices = (move.of(left), move.of(right) if made.meta["val"].dim() == 3 else right)
        new = _insert(view, SPLIT_MATMUL, matrices, {})
    else:
        return
    new.meta = dict(view.meta)
    view.replace_all_uses_with(new)
    view.graph.erase_node(view)
    view.graph.erase_node(made)
    for operand in new.all_input_nodes:
        _move_up(operand)


def _move_of(view: fx.Node) -> "_Split | _Unsqueeze | None":
    """Return the move of a view, if it may move."""
    if not _is(view, "aten.view", "aten._unsafe_view", "aten.unsqueeze"):
        return None
    old, new = (tuple(node.meta["val"].shape) for node in (view.all_input_nodes[0], view))
    if _is(view, "aten.unsqueeze"):
        dim = view.args[1]
        assert isinstance(dim, int), "unsqueeze has one dimension"
        return _Unsqueeze(view, dim % len(new) - len(new))
    added = len(new) - len(old)
    return _Split(view, new[: added + 1]) if added > 0 and old and old[1:] == new[added + 1 :] else None


@dataclass(frozen=True)
class _Split:
    """Split the first dimension into several."""

    view: fx.Node
    sizes: Shape

    def __call__(self, operand: object, rank: int) -> object:
        """Return the split operand of an elementwise operator whose result has `rank` dimensions."""
        shape = _shape(operand)
        if shape is None or len(shape) < rank or shape[0] == 1:
            return operand  # repeated along the first dimension, and so along those that it becomes
        return self.of(operand)

    def of(self, operand: object) -> fx.Node:
        assert isinstance(operand, fx.Node), "what has a shape is a node"
        value = operand.meta["val"]
        return _viewed(self.view, operand, value.view((*self.sizes, *value.shape[1:])))


@dataclass(frozen=True)
class _Unsqueeze:
    """Add a dimension of size 1."""

    view: fx.Node
    dim: int  # counted from the end, where shapes are aligned

    def __call__(self, operand: object, rank: int) -> object:
        shape = _shape(operand)
        if shape is None or len(shape) + 1 < -self.dim:
            return operand  # begins after the new dimension, so it is repeated along it anyway
        assert isinstance(operand, fx.Node), "what has a shape is a node"
        new = _insert(self.view, aten.unsqueeze.default, (operand, self.dim), {})
        new.meta = {"val": operand.meta["val"].unsqueeze(self.dim)}
        return new


def _shape(operand: object) -> Shape | None:
    """Return the shape of an operand that must change with its operator; None if it is a constant or no tensor."""
    if not isinstance(operand, fx.Node) or not isinstance(operand.meta["val"], torch.Tensor):
        return None
    is_constant = operand.op == "call_function" and kind_of(operand) is Kind.CONSTANT
    return None if is_constant else tuple(operand.meta["val"].shape)


def _viewed(before: fx.Node, operand: fx.Node, value: torch.Tensor) -> fx.Node:
    new = _insert(before, torch.ops.aten.view.default, (operand, list(value.shape)), {})
    new.meta = {"val": value}
    return new


def _insert(before: fx.Node, target: object, args: tuple[object, ...], kwargs: Mapping[str, object]) -> fx.Node:
    with before.graph.inserting_before(before):
        return before.graph.call_function(target, args, dict(kwargs))  # type: ignore[arg-type]  # targets of nodes
