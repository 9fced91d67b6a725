"""The places of a part's values: in memory, with a way to walk through it, or computed by a kernel."""

from torch import fx

from course_lib.backends.toy.instruction_set import Kind, kind_of
from course_lib.machine import Access, Buffer


class Values:
    """Knows for each node of a part what stands for it; the part has shapes, and its inputs begin at offset 0."""

    def __init__(self, graph: fx.Graph) -> None:
        self.inputs: list[fx.Node] = graph.find_nodes(op="placeholder")
        self.outputs: list[fx.Node] = list(graph.output_node().args[0])  # type: ignore[arg-type]  # a part gives a tuple
        self.computed = [node for node in graph.nodes if node.op == "call_function" and kind_of(node) is not Kind.VIEW]
        self._is_computed = set(self.computed)

    def source(self, node: fx.Node) -> fx.Node:
        """Return the node in whose memory a value lies: an input, or what was computed."""
        while node.op == "call_function" and node not in self._is_computed:
            node = node.all_input_nodes[0]
        return node

    def is_computed(self, node: fx.Node) -> bool:
        """Tell whether a kernel computes a value, so that a kernel may have it in a register."""
        return node in self._is_computed

    def access(self, node: fx.Node) -> Access:
        """Return how to walk through memory to meet the value of a node."""
        value = node.meta["val"]
        return Access(self.source(node).name, tuple(value.shape), tuple(value.stride()), int(value.storage_offset()))

    def buffer(self, node: fx.Node) -> Buffer:
        """Return the memory of an input, or that of a computed value if it is to lie in memory."""
        value = node.meta["val"]
        return Buffer(node.name, tuple(value.shape), tuple(value.stride()), value.dtype)
