"""An artifact: a graph that a worker sent, rebuilt by the host to see that it can be.

The graph is data. Its operators are looked up in the allow-list of `course_lib.graph`, its parameters are raw
tensors, and the rebuilt module is linted. Nothing of it runs in the host: running happens in a clean worker.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import torch

import course_lib.kernels  # noqa: F401 - registers the course's operators, which graphs may call
from autograder.host import shared_inputs
from autograder.host.artifacts.dead import dead_calls
from autograder.host.channel import MalformedAnswerError
from autograder.protocol import GraphData, Result
from autograder.protocol.requests.graph import WrittenGraph
from course_lib.errors import GraphError
from course_lib.graph import from_data

MAX_TENSOR_BYTES = 64 << 20


class ArtifactRefusedError(Exception):
    """The graph holds something that is not allowed; the sentence names the node."""


@dataclass(frozen=True)
class Artifact:
    """A checked graph: its data, and its tensors by path."""

    graph: GraphData
    tensors: Mapping[str, torch.Tensor]
    dead: tuple[str, ...] = ()
    """Calls whose results nothing needs; see `dead_calls`."""

    def count(self, operator: str) -> int:
        """How many nodes call ``operator`` (such as ``torch.ops.course_lib.bias_silu``) in any overload."""
        targets = [n["target"] for n in self.graph["nodes"] if n["op"] == "call_function"]
        return sum(t == operator or t.startswith(f"{operator}.") for t in targets)

    def calls(self) -> int:
        """How many nodes call something, whether or not anything reads their results."""
        return sum(n["op"].startswith("call_") for n in self.graph["nodes"])

    def with_tensors(self, tensors: Mapping[str, torch.Tensor]) -> Artifact:
        """Return the same graph with the host's own values for every tensor that the host sent."""
        known = {p: tensors[p] if p in tensors and tensors[p].shape == t.shape else t for p, t in self.tensors.items()}
        return replace(self, tensors=known)


def read_artifact(reply: Result[WrittenGraph], *, max_nodes: int) -> Artifact:
    """Check and rebuild the graph in a worker's reply; ``max_nodes`` bounds its nodes, modules and tensors.

    Raises `MalformedAnswerError` when the reply has another form than a worker's, and `ArtifactRefusedError` when the
    graph is not allowed.
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
        module = from_data(graph, tensors)
    except GraphError as error:
        raise ArtifactRefusedError(str(error)) from None
    return Artifact(graph, tensors, dead_calls(module.graph))
