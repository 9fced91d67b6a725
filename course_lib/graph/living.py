"""How much memory the values of a graph take, node by node."""

import copy
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import torch

from course_lib.graph.regions import storage_of, tensors_in
from course_lib.graph.shapes import propagate_shapes


@dataclass(frozen=True)
class LiveMemory:
    """Memory of the values that a graph computes, in bytes; inputs and parameters do not count."""

    peak_bytes: int
    peak_node: str  # the first node at which it is reached
    alive: tuple[str, ...]  # the nodes whose values are alive then
    by_node: Mapping[str, int]  # node -> bytes alive while it runs


def live_memory(gm: torch.fx.GraphModule, example_inputs: Sequence[object]) -> LiveMemory:
    """Return how much memory is alive at each node of a graph, without computing anything.

        >>> gm = torch.fx.symbolic_trace(lambda x: torch.relu(x.exp().sum()))
        >>> live_memory(gm, [torch.empty(10)]).by_node
        {'x': 0, 'exp': 40, 'sum_1': 44, 'relu': 8, 'output': 4}

    A value lives from the node that computes it to the last node that uses it or a view of it; while a node runs, its
    operands and its result are alive together. What a node allocates inside, as modules may, is not seen; `cost`
    sees it. Raises `GraphError` if the graph cannot run on inputs of these shapes.
    """
    annotated = propagate_shapes(torch.fx.GraphModule(gm, copy.deepcopy(gm.graph)), example_inputs)
    nodes = list(annotated.graph.nodes)
    sizes, first, last = _lifetimes(nodes)
    by_node: dict[str, int] = {}
    for place, node in enumerate(nodes):
        by_node[node.name] = sum(size for s, size in sizes.items() if first[s] <= place <= last[s])
    peak_node = max(by_node, key=by_node.__getitem__)
    peak = [node.name for node in nodes].index(peak_node)
    owners = {storage: nodes[place].name for storage, place in first.items()}
    alive = tuple(owners[storage] for storage in sizes if first[storage] <= peak <= last[storage])
    return LiveMemory(by_node[peak_node], peak_node, alive, by_node)


def _lifetimes(nodes: Sequence[torch.fx.Node]) -> tuple[dict[int, int], dict[int, int], dict[int, int]]:
    """Return size, first and last place of each storage that a node allocates."""
    sizes: dict[int, int] = {}
    first: dict[int, int] = {}
    last: dict[int, int] = {}
    given: set[int] = set()
    for place, node in enumerate(nodes):
        for operand in node.all_input_nodes:
            last.update((storage_of(tensor), place) for tensor in tensors_in(operand.meta["val"]))
        for tensor in tensors_in(node.meta["val"]):
            storage = storage_of(tensor)
            if node.op in ("placeholder", "get_attr"):
                given.add(storage)
            if storage not in given and storage not in sizes:
                sizes[storage] = tensor.untyped_storage().nbytes()
                first[storage] = last[storage] = place
    return sizes, first, last
