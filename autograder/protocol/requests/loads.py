"""Load requests, and the requests that a worker serves after them.

An answer serves the requests of `answers`. All other loads hold data that the host made or checked, for a worker that
never sees student code.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from autograder.protocol.contract import Count, Done, GraphData, Json, Request, TensorName
from autograder.protocol.requests.answers import Arguments, Called, InputForm, OwnOperator, PackedValue, TensorCall

Load = Request[Done]
"""Any of the requests of this file whose name begins with Load."""


@dataclass(frozen=True)
class Part:
    """A cell of a notebook: its name, such as "setup", and its text."""

    name: str
    text: str


@dataclass(frozen=True)
class LoadAnswer(Request[Done]):
    """Run the parts as one module, and serve requests of this kind with its function `entry_point`.

    Of Triton kernels the host checks the text beforehand; it may not name a function of `refused`.
    """

    kind: str
    entry_point: str
    parts: tuple[Part, ...]
    refused: tuple[str, ...] = ()


@dataclass(frozen=True)
class LoadOperators(Request[Done]):
    """Run a text that registers operators, which the host has checked, and serve `CallFunction` with their names."""

    part: Part


@dataclass(frozen=True)
class LoadGraph(Request[Done]):
    """Rebuild a graph that the host has checked, and serve `CallGraph`, `CountGraph`, `CountStep`, `ObserveWrites`.

    `paths` names the tensors that come with it. If `training` is None, its modules keep their modes. With `by`, timed
    rounds run a training step: they give a loss of the graph, and its gradients by these parameters. The graph may call
    `operators`, whose kernels and launchers `kernels` defines, texts that the host has checked.
    """

    graph: GraphData
    paths: tuple[TensorName, ...]
    training: bool | None
    by: tuple[TensorName, ...] = ()
    operators: tuple[OwnOperator, ...] = ()
    kernels: tuple[Part, ...] = ()


@dataclass(frozen=True)
class Cost:
    """The cost of running a graph once."""

    launches: int
    bytes_read: int
    bytes_written: int
    flops: int
    """Floating-point operations of matrix products, convolutions and attention."""
    peak_bytes: int
    """The peak of the memory that the graph allocates, its results included."""
    longest_side: int
    """The largest number of rows or columns of a matrix that has a part in a product."""


@dataclass(frozen=True)
class GraphCalled:
    """The result of running a graph, and its cost if it was requested."""

    called: Called
    cost: Cost | None
    by_position: tuple[Count, ...]
    """The numbers of the draws whose masks follow from positions of elements, see `ReplayedDraws`."""


@dataclass(frozen=True)
class CallGraph(Request[GraphCalled]):
    """Call the graph of a `LoadGraph`.

    With `restored`, the graph's own tensors are first reset to the values that were sent. With `draws`, which is a
    seed, the k-th dropout has the mask that it has in any other program under the same seed.
    """

    call: TensorCall
    restored: bool
    count: bool
    draws: int | None = None
    by: tuple[TensorName, ...] = ()
    """Parameters of the graph to differentiate by as well, after the tensors of the call."""


@dataclass(frozen=True)
class CountGraph(Request[Cost]):
    """Count the cost of the graph of a `LoadGraph` on random inputs of these forms; its outputs stay in the worker."""

    inputs: tuple[InputForm, ...]


@dataclass(frozen=True)
class StepCost:
    """The counters of one training step, forward and backward, of a graph."""

    kernels: int
    """Launches of the forward pass alone."""
    launches: int
    bytes_moved: int
    saved_bytes: int
    """Bytes that the forward pass keeps for the backward pass, without inputs and parameters."""


@dataclass(frozen=True)
class CountedStep:
    """The counters of a step, and what it computed: the tensors are its loss, then the existing gradients."""

    cost: StepCost
    gradients: tuple[bool, ...]
    """For each parameter to differentiate by, whether there is a gradient."""


@dataclass(frozen=True)
class CountStep(Request[CountedStep]):
    """Count a training step of the graph of a `LoadGraph` on the tensors that come with the request.

    It goes by the parameters named in `by`; its k-th dropout has the mask that follows from the seed `draws`.
    """

    by: tuple[TensorName, ...]
    draws: int


@dataclass(frozen=True)
class Writes:
    """The nodes of a graph that wrote into a tensor that was there before them, in the order of the graph."""

    nodes: tuple[str, ...]


@dataclass(frozen=True)
class ObserveWrites(Request[Writes]):
    """Run the graph of a `LoadGraph` node by node, and observe which of its calls write."""

    call: TensorCall


@dataclass(frozen=True)
class LoadArchive(Request[Done]):
    """Keep the TorchScript archive that comes as one tensor, and serve `RunArchive` and `DescribeArchive`."""


@dataclass(frozen=True)
class ArchiveRun:
    """The number of tensors that each call returned."""

    outputs: tuple[Count, ...]


@dataclass(frozen=True)
class RunArchive(Request[ArchiveRun]):
    """Make calls one after the other on one freshly loaded program."""

    calls: tuple[Arguments, ...]


@dataclass(frozen=True)
class ArchiveNode:
    """A node of an optimised TorchScript graph."""

    kind: str
    """The kind of node, such as "aten::add", "prim::If" or "prim::TensorExprGroup"."""
    blocks: tuple[tuple["ArchiveNode", ...], ...] = ()
    """The bodies of an If or a Loop."""
    subgraph: tuple["ArchiveNode", ...] = ()
    """The nodes of a fusion group or of a differentiable graph."""
    tensors: bool = True
    """Whether an output is a tensor or holds one; a size, a truth value or a list of numbers is none."""
    reads: bool = False
    """Whether an input is a tensor, other than a size that a trace holds as one."""


@dataclass(frozen=True)
class ArchiveGraph:
    """The optimised graph."""

    nodes: tuple[ArchiveNode, ...]


@dataclass(frozen=True)
class DescribeArchive(Request[ArchiveGraph]):
    """Repeat calls until the executor has fused operators, and describe the optimised graph."""

    calls: tuple[Arguments, ...]


@dataclass(frozen=True)
class LoadLowering(Request[Done]):
    """Serve `LowerSteps`, and `LowerGraph` for the graph, if there is one; `paths` names its tensors."""

    graph: GraphData | None = None
    paths: tuple[TensorName, ...] = ()


@dataclass(frozen=True)
class LoweredCost:
    """The cost of Inductor's code for a program."""

    generated_kernels: int
    library_calls: int
    bytes_moved: int
    graphs: int
    """More than one after a graph break."""
    fused_loops: int
    """Loops after fusion and calls of libraries; on a CPU, one kernel may contain several loops."""


@dataclass(frozen=True)
class LowerGraph(Request[LoweredCost]):
    """Lower the loaded graph for the tensors that come with the request."""


@dataclass(frozen=True)
class LowerSteps(Request[LoweredCost]):
    """Lower a program of the host's (see `course_lib.models.program_from_steps`) with these options of Inductor."""

    steps: Mapping[str, Json]
    config: Mapping[str, Json]


@dataclass(frozen=True)
class LoadEvents(Request[Done]):
    """Serve `ReadEvents`."""


@dataclass(frozen=True)
class EventsRead:
    """The content of event files, as TensorBoard shows it."""

    scalars: Mapping[str, tuple[tuple[int, float | None], ...]]
    """Steps and values of each tag in the order of the file; None stands for a value that is not finite."""
    graph_operators: Mapping[str, int]
    """The number of nodes of each operator in the graph; empty if there is no graph."""
    histograms: Mapping[str, int]
    """The number of histograms of each tag."""


@dataclass(frozen=True)
class ReadEvents(Request[EventsRead]):
    """Read event files, whose bytes come as one tensor each."""


@dataclass(frozen=True)
class LoadTrial(Request[Done]):
    """Run the host's text, which defines programs, and serve `RunTrial`."""

    text: str


@dataclass(frozen=True)
class RunTrial(Request[PackedValue]):
    """Run one program of the host on inputs that a student chose; a tuple gives one argument for each item."""

    program: str
    seed: int
    double: bool
    """Whether to convert floating-point tensors to double precision."""
    inputs: PackedValue
