"""An artifact: a graph that a worker sent, rebuilt by the host.

The graph is data. Its operators are looked up in the allow-list of `course_lib.graph`, its parameters are raw tensors,
and the rebuilt module is linted. The host runs none of it; a clean worker does.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Self

import torch
from torch import fx

import course_lib.kernels  # noqa: F401 - registers the course's operators, which graphs may call
from autograder.host import shared_inputs
from autograder.host.artifacts.declared_operators import OperatorRefusedError, OwnOperators, checked_operators
from autograder.host.artifacts.operator_calls import OperatorCall, read_calls
from autograder.host.channel import MalformedAnswerError
from autograder.protocol import GraphData, Result
from autograder.protocol.requests.answers import WrittenGraph
from course_lib.errors import GraphError
from course_lib.fusion.supposition import is_declared_to_write
from course_lib.graph import from_data

MAX_TENSOR_BYTES = 64 << 20


class ArtifactRefusedError(Exception):
    """The graph holds something that is not allowed; the message names the node."""


@dataclass(frozen=True)
class Artifact:
    """A checked graph: its data, and its tensors by path."""

    graph: GraphData
    tensors: Mapping[str, torch.Tensor]
    called: Mapping[str, OperatorCall] = field(default_factory=dict)
    """What each call is, by the name of its node and in order; left empty for a graph of the host's own."""
    inputs: int = 0
    """The number of inputs; left out for a graph of the host's own."""
    dead: tuple[str, ...] = ()
    """Calls whose results are not needed; see `dead_calls`."""
    own: OwnOperators = field(default_factory=OwnOperators)
    """The operators of the answer's own that it may call."""

    def rebuilt(self) -> fx.GraphModule:
        """Return the graph as a module, which is not to be run here."""
        return from_data(self.graph, self.tensors, own=self.own.stand_ins())

    def count(self, operator: str, *, unneeded: bool = False) -> int:
        """Return how many nodes call `operator` (such as `torch.ops.course_lib.bias_silu`) in any overload.

        Calls whose results nothing needs count only with `unneeded`: they may stand beside what is really run.
        """
        return sum(call.is_of(operator) for name, call in self.called.items() if unneeded or name not in self.dead)

    def calls(self) -> int:
        """Return the number of nodes that are calls, even if unused."""
        return len(self.called)

    def with_tensors(self, tensors: Mapping[str, torch.Tensor]) -> Self:
        """Return the same graph, with the host's values for every tensor that the host sent."""
        known = {p: tensors[p] if p in tensors and tensors[p].shape == t.shape else t for p, t in self.tensors.items()}
        return replace(self, tensors=known)


def read_artifact(reply: Result[WrittenGraph], *, max_nodes: int, texts: Mapping[str, str] | None = None) -> Artifact:
    """Check and rebuild the graph in a worker's reply; `max_nodes` bounds its nodes, modules and tensors.

    `texts` are the answer's, where its graph may call operators of its own.

    Raise `MalformedAnswerError` if the reply does not have a worker's form, and `ArtifactRefusedError` if the graph is
    not allowed.
    """
    graph, paths = reply.body.graph, reply.body.paths
    if len(paths) != len(reply.tensors) or len(set(paths)) != len(paths):
        raise MalformedAnswerError("The worker sent tensors that do not fit their names.")
    size = sum(len(t.data) for t in reply.tensors)
    if size > MAX_TENSOR_BYTES:
        raise ArtifactRefusedError(
            f"the graph carries {size:,} bytes of tensors; at most {MAX_TENSOR_BYTES:,} are accepted."
        )
    for what in ("nodes", "modules", "tensors"):
        entries = graph.get(what)
        if isinstance(entries, list | dict) and len(entries) > max_nodes:
            raise ArtifactRefusedError(
                f"the graph has {len(entries):,} {what}; at most {max_nodes:,} are accepted here."
            )
    tensors = dict(zip(paths, map(shared_inputs.to_torch, reply.tensors), strict=True))
    try:
        own = checked_operators(reply.body.operators, texts)
        module = from_data(graph, tensors, own=own.stand_ins())
    except (GraphError, OperatorRefusedError) as error:
        raise ArtifactRefusedError(str(error)) from None
    inputs = len(module.graph.find_nodes(op="placeholder"))
    calls, dead = read_calls(module, own.names()), dead_calls(module.graph)
    return Artifact(graph, tensors, calls, inputs, dead, own)


def dead_calls(graph: fx.Graph) -> tuple[str, ...]:
    """Return the names of calls whose results reach neither the output nor an in-place write.

    >>> dead_calls(fx.symbolic_trace(lambda x: (x + 1, x * 2)[0]).graph)
    ('mul',)
    """
    alive: set[fx.Node] = set()
    for node in reversed(graph.nodes):
        if node.op == "output" or is_declared_to_write(node) or any(user in alive for user in node.users):
            alive.add(node)
    return tuple(node.name for node in graph.nodes if node.op.startswith("call_") and node not in alive)
