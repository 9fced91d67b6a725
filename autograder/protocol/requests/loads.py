"""Loads: what a worker holds from now on.

Here is also what is asked of those that lower programs or read event files; the rest stands with its kind.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from autograder.protocol.contract import Done, GraphData, Json, Request, TensorName

Load = Request[Done]
"""Any of the requests of this file."""


@dataclass(frozen=True)
class Part:
    """A cell of a notebook: its name, such as "setup", and its text."""

    name: str
    text: str


@dataclass(frozen=True)
class LoadAnswer(Request[Done]):
    """Run the parts as one module, and serve requests of this kind with its function `entry_point`."""

    kind: str
    entry_point: str
    parts: tuple[Part, ...]


@dataclass(frozen=True)
class LoadGraph(Request[Done]):
    """Rebuild a graph that the host has checked, and serve `CallGraph`.

    `paths` names the tensors that come with it. With `training` None its modules stay in the modes that they came with.
    """

    graph: GraphData
    paths: tuple[TensorName, ...]
    training: bool | None


@dataclass(frozen=True)
class LoadArchive(Request[Done]):
    """Keep the TorchScript archive that comes as one tensor, and serve `RunArchive` and `DescribeArchive`."""


@dataclass(frozen=True)
class LoadLowering(Request[Done]):
    """Serve `LowerSteps`, and `LowerGraph` for the graph, if there is one; `paths` names its tensors."""

    graph: GraphData | None = None
    paths: tuple[TensorName, ...] = ()


@dataclass(frozen=True)
class LoadEvents(Request[Done]):
    """Serve `ReadEvents`."""


@dataclass(frozen=True)
class LoadTrial(Request[Done]):
    """Run the host's text, which defines programs, and serve `RunTrial`."""

    text: str


@dataclass(frozen=True)
class LoweredCost:
    """The cost of Inductor's code for a program."""

    generated_kernels: int
    library_calls: int
    bytes_moved: int
    graphs: int
    """More than one after a graph break."""
    fused_loops: int
    """Loops after fusion, several of which may lie in one kernel on a CPU, and calls of a library's."""


@dataclass(frozen=True)
class LowerGraph(Request[LoweredCost]):
    """Lower the loaded graph for the tensors that come with the request."""


@dataclass(frozen=True)
class LowerSteps(Request[LoweredCost]):
    """Lower a program of the host's (see `course_lib.models.program_from_steps`) with these options of Inductor."""

    steps: Mapping[str, Json]
    config: Mapping[str, Json]


@dataclass(frozen=True)
class EventsRead:
    """The content of event files, as TensorBoard shows it."""

    scalars: Mapping[str, tuple[tuple[int, float | None], ...]]
    """Of each tag, step and value in the order of the file; None for a value that is not finite."""
    graph_nodes: int
    histograms: Mapping[str, int]
    """How many of each tag."""


@dataclass(frozen=True)
class ReadEvents(Request[EventsRead]):
    """Read event files, whose bytes come as one tensor each."""
