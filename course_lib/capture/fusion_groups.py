"""Read the graph that TorchScript's executor has optimised for some inputs: profiled types and fusion groups."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from typing import Any

import torch

from course_lib.capture.captured import Captured
from course_lib.capture.saved_programs import copy_of, freeze
from course_lib.capture.script_graphs import Fuser, fusing_with
from course_lib.errors import CaptureError
from course_lib.isolation import fresh_inputs, preserving
from course_lib.silence import kept_warnings

GROUPS = ("prim::TensorExprGroup", "prim::oneDNNFusionGroup", "prim::FusionGroup", "prim::CudaFusionGroup")
GUARDS = ("prim::TypeCheck", "prim::oneDNNFusionGuard", "prim::RequiresGradCheck")


@dataclass(frozen=True)
class FusionGroup:
    """Describe operators that the executor runs as one group."""

    kind: str  # "prim::TensorExprGroup", "prim::oneDNNFusionGroup"
    operators: tuple[str, ...]  # in order, without constants
    ir: str = field(repr=False)


@dataclass(frozen=True)
class OptimizedGraph:
    """Hold the graph that the executor ran last."""

    ir: str = field(repr=False)
    groups: tuple[FusionGroup, ...]
    profiled_types: Mapping[str, str]  # value -> the profiled type, which is checked before the optimised graph runs


def optimized_graph(
    captured: Captured, example_inputs: Sequence[object], *, fuser: Fuser = "tensor_expressions", runs: int = 3
) -> OptimizedGraph:
    """Run a traced or scripted program a few times, and return the graph that the executor has optimised.

        >>> from course_lib.capture import capture
        >>> x, bias = torch.ones(4, 8), torch.ones(8)
        >>> traced = capture(lambda x, bias: torch.tanh(x + bias) * 2, (x, bias), mode="trace")
        >>> optimized_graph(traced, (x, bias)).groups[0].operators
        ('aten::add', 'aten::tanh', 'aten::mul')

    The first run profiles the types of all values; the next one specialises and fuses. With gradients, one more run is
    needed. A copy runs under the switches of `fusing_with`, which are restored; "onednn" freezes the copy and runs it
    without gradients.

    Raises `CaptureError` if the program was captured in another mode, or fails on the inputs.
    """
    if runs < 1:
        raise CaptureError(f"optimized_graph got runs={runs}; the executor must have run at least once.")
    script = copy_of(captured if fuser != "onednn" else freeze(captured))
    gradients = torch.no_grad() if fuser == "onednn" else nullcontext()
    # the captured program already holds the warnings
    with preserving(None), fusing_with(fuser), gradients, kept_warnings():
        try:
            for _ in range(runs):
                script(*fresh_inputs(example_inputs))
            graph = script.graph_for(*fresh_inputs(example_inputs))
        except Exception as error:  # an operator may raise anything about its operands
            raise CaptureError(f"The program fails on these inputs while it is profiled: {error}") from error
    return OptimizedGraph(str(graph), tuple(_groups(graph)), dict(_profiled_types(graph)))


def _groups(graph: Any) -> Iterator[FusionGroup]:
    for kind in GROUPS:
        for node in graph.findAllNodes(kind, recurse=True):
            inside = node.g("Subgraph")
            operators = [one.kind() for one in inside.nodes() if one.kind() != "prim::Constant"]
            yield FusionGroup(kind, tuple(operators), str(inside))
    for node in graph.findAllNodes("prim::DifferentiableGraph", recurse=True):  # a part with its own derivative
        yield from _groups(node.g("Subgraph"))


def _profiled_types(graph: Any) -> Iterator[tuple[str, str]]:
    for kind in GUARDS:
        for node in graph.findAllNodes(kind, recurse=True):
            for checked, result in zip(node.inputs(), node.outputs(), strict=False):  # the last output is the check
                yield checked.debugName(), _describe(result.type())
    for node in graph.findAllNodes("prim::DifferentiableGraph", recurse=True):
        yield from _profiled_types(node.g("Subgraph"))


def _describe(kind: Any) -> str:
    """Return a short text for a type, such as "Float[4, 8]"; it omits sizes that varied between runs."""
    scalar = kind.scalarType() if hasattr(kind, "scalarType") else None
    sizes = kind.sizes() if scalar else None
    return f"{scalar}{sizes}" if sizes is not None else str(scalar or kind)
