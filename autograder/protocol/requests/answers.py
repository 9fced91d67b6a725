"""The requests that a student's answer serves, and their replies, kind by kind.

The `member` of a request names one of the functions in the dict that the entry point returns. It is empty for the
entry point itself.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Literal

from autograder.protocol.contract import Count, Done, GraphData, Json, Request, TensorName
from autograder.protocol.decoder import Within


@dataclass(frozen=True)
class Value:
    """The return value of a function."""

    value: Json


@dataclass(frozen=True)
class Ask(Request[Value]):
    """Call the function with plain data; of a returned dict only `keys` are sent, all if there are none."""

    question: Json
    keys: tuple[str, ...] = ()


@dataclass(frozen=True)
class AskEach(Request[Value]):
    """Call the function with each question in turn; the reply lists the results."""

    questions: tuple[Json, ...]


@dataclass(frozen=True)
class Analyse(Request[Value]):
    """Run `text`, call its function `make` with `arguments`, and call the answer's function with the returned items.

    A graph in the reply is written as rows of name, op, target and the names of the input nodes.
    """

    text: str
    make: str
    arguments: Mapping[str, Json]


@dataclass(frozen=True)
class Employ(Request[Value]):
    """Run `text`, and call its function `use` with the answer's function and `arguments`; it returns plain data.

    So the answer may return objects that cannot be sent, such as modules: the host's text uses them and reports.
    """

    text: str
    use: str
    arguments: Mapping[str, Json]


@dataclass(frozen=True)
class Arguments:
    """The arguments of a call or of a build.

    `{"tensor": i}` stands for tensor number `i` of the message, `{"folder": true}` for the path of an empty folder.
    """

    args: tuple[Json, ...] = ()
    kwargs: Mapping[str, Json] = field(default_factory=dict)


@dataclass(frozen=True)
class TensorCall:
    """One call; it also runs backward if `cotangents` are given."""

    arguments: Arguments
    wrt: tuple[int, ...] = ()
    """The numbers of the tensors to differentiate by."""
    cotangents: tuple[int, ...] = ()
    """For each output, the number of the tensor that holds its gradient."""


@dataclass(frozen=True)
class Called:
    """The result of a call; its tensors are the outputs, then the existing gradients."""

    outputs: Count
    is_tuple: bool
    gradients: tuple[bool, ...]
    """For each tensor to differentiate by, whether there is a gradient."""
    aliases: tuple[int, ...]
    """The outputs that share memory with an input."""


@dataclass(frozen=True)
class CallFunction(Request[Called]):
    """Call a function of the answer, without a capture; an empty name means the entry point."""

    function: str
    call: TensorCall


@dataclass(frozen=True)
class CalledConcurrently:
    """For each call, its first result and the first later result that differs from it, if there is one."""

    calls: tuple[Called, ...]


@dataclass(frozen=True)
class CallConcurrently(Request[CalledConcurrently]):
    """Make each call many times in its own thread, at the same time as the other calls.

    Each call numbers its own tensors from 0; `counts` holds the number of tensors of each call.
    """

    function: str
    calls: tuple[TensorCall, ...]
    counts: tuple[Count, ...]


@dataclass(frozen=True)
class Described:
    """The contents of a fresh module, by name; the tensors and the bytes of files come in this order."""

    parameters: tuple[TensorName, ...]
    buffers: tuple[TensorName, ...]
    files: tuple[TensorName, ...]
    """Files that the entry point wrote into the folder that it was given."""


@dataclass(frozen=True)
class DescribeModule(Request[Described]):
    """Build the module and return its parameters, buffers and files."""

    build: Arguments
    training: bool


@dataclass(frozen=True)
class CallModule(Request[Called]):
    """Build the module in the precision of the state, load the state into it, and call it.

    Before that, this module and another one are called with the earlier state, and the results are dropped.
    """

    build: Arguments
    training: bool
    earlier: Mapping[str, int]
    state: Mapping[str, int]
    """The names of each state to the numbers of their tensors."""
    by: tuple[str, ...]
    """Parameters to differentiate by as well, after the tensors of the call."""
    call: TensorCall


Name = Annotated[str, Within(1, 100)]
Names = Annotated[tuple[Name, ...], Within(0, 32)]


@dataclass(frozen=True)
class OwnOperator:
    """An operator that the answer made of launchers of Triton kernels, in names; see `course_lib`'s `Declaration`."""

    name: Name
    """With its namespace: "step::block_end"; a graph calls it "own.step::block_end"."""
    forward: Name
    """The launcher for the results."""
    backward: Name
    """The launcher for the gradients."""
    results: Names
    keeps: Names
    gradients: Names


@dataclass(frozen=True)
class WrittenGraph:
    """A graph as data; `paths` names the tensors beside it, in turn."""

    graph: GraphData
    paths: tuple[TensorName, ...]
    operators: Annotated[tuple[OwnOperator, ...], Within(0, 32)] = ()
    """The operators of the answer's own that the graph calls."""


@dataclass(frozen=True)
class ValueOnGraph:
    """A value that belongs to a graph, and the graph as it is then."""

    value: Json
    graph: WrittenGraph


@dataclass(frozen=True)
class RunNamedPass(Request[ValueOnGraph]):
    """Have the function make a `CustomGraphPass` for Inductor, and run the pass on a graph.

    The reply has the `repr` of the pass's `uuid()`, and the graph as the pass left it.
    """

    options: Mapping[str, Json]
    """The keyword arguments of the function."""
    graph: GraphData


@dataclass(frozen=True)
class InputForm:
    """The form of one input, which shape propagation writes into `node.meta["tensor_meta"]`."""

    shape: tuple[int, ...]
    dtype: str


@dataclass(frozen=True)
class Transform(Request[WrittenGraph]):
    """Run the pass on a graph; the message carries the graph's tensors in the order of `paths`."""

    graph: GraphData
    paths: tuple[TensorName, ...]
    inputs: tuple[InputForm, ...]


@dataclass(frozen=True)
class CallTransformed(Request[Called]):
    """Run the pass as `transform` says, and call the module that it returns.

    The message carries the tensors of the graph, then those of the call.
    """

    transform: Transform
    call: TensorCall
    outdated: bool
    """Whether the module that the pass gets returns None until it is compiled again."""


@dataclass(frozen=True)
class Schedule(Request[WrittenGraph]):
    """Build the model, let the answer schedule it, and trace the result."""

    text: str
    """The model's source, which defines `Encoder`."""
    arguments: Mapping[str, Json]
    """The arguments of `Encoder`."""
    state: tuple[TensorName, ...]
    """The names of the model's tensors, which come with the request."""
    training: bool
    """The mode in which the result is traced."""
    scheduled_in_training: bool
    """The mode of the model when the answer is called."""
    question: tuple[Json, ...]
    """Further arguments of the answer, after the schedule."""
    times: int
    """How often the answer is called."""
    part: str
    """The path of the part whose graph is returned, which the answer must have traced; empty for the model."""
    leaves: tuple[str, ...]
    """Classes that are kept whole where the model is traced before the answer is called; see `operator`."""
    operator: str
    """For answers that only find matches: the operator of `course_lib.kernels` that replaces the matches.

    The model is then traced before the answer is called, with every bias separated. Empty for all others.
    """


How = Literal["dynamo", "dispatch", "export"]
"""Capture with Dynamo as one graph, record the ATen operators that run when the function is called once, or take the
graph of the exported program that the function returns for examples."""


@dataclass(frozen=True)
class Capture(Request[WrittenGraph]):
    """Capture a function for the tensors that come with the request."""

    member: str
    how: How
    dynamic: tuple[tuple[int, ...], ...]
    """For each input, the dimensions with a dynamic size."""


@dataclass(frozen=True)
class AskMember(Request[Value]):
    """Call a function with plain data."""

    member: str
    question: Json


@dataclass(frozen=True)
class CollectedGraph:
    """One graph that the answer kept, and the shapes of its example inputs as the answer reports them."""

    graph: WrittenGraph
    shapes: tuple[tuple[int, ...], ...]


@dataclass(frozen=True)
class CollectedGraphs:
    """The number of results, and the graphs; the tensors are the results, then those of the graphs."""

    results: Count
    graphs: tuple[CollectedGraph, ...]
    given: tuple[WrittenGraph, ...]
    """The graphs as Dynamo gave them to the backend, if the request asks for them; their tensors come last."""


@dataclass(frozen=True)
class Collect(Request[CollectedGraphs]):
    """Ask the answer to run a function of the host on each of `calls`, and to collect the graphs that this gives.

    The host sends the function as source text: `program` is the text, and `name` is the function defined in it.
    """

    member: str
    program: str
    name: str
    calls: tuple[Arguments, ...]
    given: bool
    """Whether to write down each graph before the backend has it, too."""


@dataclass(frozen=True)
class ScriptFunction(Request[Done]):
    """Script a function of the answer's cell; the bytes of its archive come as one tensor."""

    function: str


@dataclass(frozen=True)
class ScriptModule(Request[Done]):
    """Script the module that the entry point makes from `build`; the bytes of its archive come as one tensor."""

    build: tuple[Json, ...]
    state: Mapping[str, int]
    """The names of its state to the numbers of their tensors."""


@dataclass(frozen=True)
class PackedGraph:
    """A program among the values, and the numbers of its tensors by path."""

    graph: GraphData
    tensors: Mapping[str, Count]


@dataclass(frozen=True)
class PackedValue:
    """A value as JSON, and the graphs in it; tensors come beside them."""

    value: Json
    """None, bool, int, float, str and lists are encoded as themselves, and all other values as an object with one key:

    {"tuple": [...]}, {"dict": {...}}, {"float": "nan"}, {"tensor": number} or {"graph": number}.
    """
    graphs: tuple[PackedGraph, ...]


@dataclass(frozen=True)
class FindInputs(Request[PackedValue]):
    """Call the function with plain data, and pack the inputs that it returns.

    With `make`, a function of the host's `text` first makes the function's arguments, a tuple, from the plain data.
    """

    question: Json
    text: str = ""
    make: str = ""
