"""Graph: a graph to the graph that a pass makes of it."""

from dataclasses import dataclass

from autograder.protocol.contract import GraphData, Request, TensorName


@dataclass(frozen=True)
class WrittenGraph:
    """A graph as data; `paths` names the tensors beside it, in turn."""

    graph: GraphData
    paths: tuple[TensorName, ...]


@dataclass(frozen=True)
class InputForm:
    """The form of one input, which shape propagation writes into `node.meta["tensor_meta"]`."""

    shape: tuple[int, ...]
    dtype: str


@dataclass(frozen=True)
class Transform(Request[WrittenGraph]):
    """Run the pass on a graph, whose tensors come beside it in the order of `paths`."""

    graph: GraphData
    paths: tuple[TensorName, ...]
    inputs: tuple[InputForm, ...]
