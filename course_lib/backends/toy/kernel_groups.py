"""Group the operators of a part into kernels: those of one group share a launch.

Operators share a launch if they work on the same index space and this creates no cycle. Operators with a view between
them do not share a launch, because the second needs another shape than the value has in its register. A kernel holds at
most one matrix product, which comes first, and all its reductions run over the same dimensions, the columns.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from torch import fx

from course_lib.backends.condensation import Condensation
from course_lib.backends.toy.instruction_set import Kind, kind_of, reduced_dimensions
from course_lib.machine import Access, Buffer


class Values:
    """Give source, access and buffer of each node of a part with shapes, whose inputs begin at offset 0."""

    def __init__(self, graph: fx.Graph) -> None:
        self.inputs: list[fx.Node] = graph.find_nodes(op="placeholder")
        self.outputs: list[fx.Node] = list(graph.output_node().args[0])  # type: ignore[arg-type]  # a part gives a tuple
        self.computed = [node for node in graph.nodes if node.op == "call_function" and kind_of(node) is not Kind.VIEW]
        self._is_computed = set(self.computed)

    def source(self, node: fx.Node) -> fx.Node:
        """Return the node whose memory a value uses: an input or a computed node."""
        while node.op == "call_function" and node not in self._is_computed:
            node = node.all_input_nodes[0]
        return node

    def is_computed(self, node: fx.Node) -> bool:
        """Tell whether a kernel computes a value, so that a kernel may have it in a register."""
        return node in self._is_computed

    def access(self, node: fx.Node) -> Access:
        """Return the access to the memory that holds the value of a node."""
        value = node.meta["val"]
        return Access(self.source(node).name, tuple(value.shape), tuple(value.stride()), int(value.storage_offset()))

    def buffer(self, node: fx.Node) -> Buffer:
        """Return the buffer of an input, or of a computed value that is stored in memory."""
        value = node.meta["val"]
        return Buffer(node.name, tuple(value.shape), tuple(value.stride()), value.dtype)


Shape = tuple[int, ...]


@dataclass(frozen=True)
class Work:
    """The index space that a launch works on."""

    space: Shape
    columns: tuple[int, ...] | None = None  # None as long as nothing is reduced
    matmuls: int = 0

    def joined(self, other: "Work") -> "Work | None":
        """Return the work of both in one kernel, or None if they cannot share a space.

        Elementwise work on a shape that broadcasts to the space is repeated for every element.
        """
        if self.space == other.space:
            if None not in (self.columns, other.columns) and self.columns != other.columns:
                return None
            columns = other.columns if self.columns is None else self.columns
            return Work(self.space, columns, self.matmuls + other.matmuls)
        small_fits = other.columns is None and not other.matmuls and _repeats_to(other.space, self.space)
        return self if small_fits else None


def work_of(node: fx.Node) -> Work:
    """Return the index space of a computed node."""
    if kind_of(node) is Kind.REDUCTION:
        return Work(_shape(node.all_input_nodes[0]), reduced_dimensions(node))
    return Work(_shape(node), matmuls=int(kind_of(node) is Kind.MATMUL))


def group_into_kernels(graph: fx.Graph, values: Values) -> list[tuple[Work, list[fx.Node]]]:
    """Return the kernels of a part in launch order, each as its work and its nodes."""
    groups = Condensation(graph)
    candidates = [node for node in values.computed if kind_of(node) is not Kind.CONSTANT]

    def fits(a: Sequence[fx.Node], b: Sequence[fx.Node]) -> bool:
        return _work([*a, *b]) is not None and not any(_needs_memory(node, {*a, *b}) for node in (*a, *b))

    groups.merge_neighbours(candidates, fits)
    groups.merge_siblings(candidates, fits)
    # Groups with equal work share a launch even without common values; two products are never merged.
    groups.merge_alike(candidates, lambda nodes: (work := _work(nodes), nodes[0] if work and work.matmuls else None))
    wanted = set(values.computed)
    kernels = []
    for nodes in groups.in_order():
        if nodes[0] in wanted:
            work = _work(nodes)
            assert work is not None, "only what fits was merged"
            kernels.append((work, nodes))
    return kernels


def _work(nodes: Sequence[fx.Node]) -> Work | None:
    """Return what nodes work on together: the space of reductions and products if there are any, else the largest."""
    works = sorted({work_of(node) for node in nodes}, key=_first_decides)
    matmuls = sum(kind_of(node) is Kind.MATMUL for node in nodes)
    total: Work | None = None
    for work in works:
        total = work if total is None else total.joined(work)
        if total is None:
            return None
    return total if matmuls <= 1 else None


def _first_decides(work: Work) -> tuple[bool, int]:
    return work.columns is None and not work.matmuls, -math.prod(work.space)


def _repeats_to(shape: Shape, space: Shape) -> bool:
    """Tell whether a tensor of this shape can be expanded to the shape `space`, as by `Tensor.expand`."""
    aligned = space[len(space) - len(shape) :] if len(shape) <= len(space) else ()
    return len(aligned) == len(shape) and all(size in (1, full) for size, full in zip(shape, aligned, strict=True))


def _needs_memory(node: fx.Node, together: set[fx.Node]) -> bool:
    """Tell whether a node reads something computed in the same kernel that it cannot read from a register."""
    return kind_of(node) is Kind.MATMUL and not together.isdisjoint(node.all_input_nodes)


def _shape(node: fx.Node) -> Shape:
    return tuple(node.meta["val"].shape)
