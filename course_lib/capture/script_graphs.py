"""Work with TorchScript graphs: switch the executor's fusers, build graphs from plain data, rewrite them by patterns.

Private: the switches are names of `torch._C` and belong to the whole process. `fusing_with` restores them.
"""

from collections import deque
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Literal, get_args

import torch

from course_lib.errors import CaptureError

Fuser = Literal["none", "tensor_expressions", "onednn"]


@contextmanager
def fusing_with(fuser: Fuser) -> Iterator[None]:
    """Make the executor fuse with one fuser, or with none, within the block.

    "tensor_expressions" (NNC) needs LLVM for fast code. PyTorch's wheels lack LLVM, so a slow reference interpreter
    runs its groups, and their times mean nothing. "onednn" is fast, and takes frozen modules. Raises `CaptureError` for
    another fuser.
    """
    if fuser not in get_args(Fuser):
        raise CaptureError(f"There is no fuser {fuser!r}; TorchScript has {', '.join(map(repr, get_args(Fuser)))}.")
    switches = _switches()
    before = [read() for read, _ in switches]
    # The second one also lets the executor specialise graphs, which it does for "none" too.
    wanted = [fuser == "tensor_expressions", fuser != "onednn", False, fuser == "onednn"]
    try:
        for (_, write), value in zip(switches, wanted, strict=True):
            write(value)
        yield
    finally:
        for (_, write), value in zip(switches, before, strict=True):
            write(value)


def has_llvm() -> bool:
    """Tell whether this build of PyTorch can compile fusion groups for the CPU; PyTorch's own packages cannot."""
    return bool(torch._C._llvm_enabled())


def _switches() -> list[tuple[Callable[[], bool], Callable[[bool], object]]]:
    """Return how to read and how to write each switch."""
    return [
        (torch._C._jit_can_fuse_on_cpu, torch._C._jit_override_can_fuse_on_cpu),
        (torch._C._jit_texpr_fuser_enabled, torch._C._jit_set_texpr_fuser_enabled),
        (torch._C._jit_get_te_must_use_llvm_cpu, torch._C._jit_set_te_must_use_llvm_cpu),  # type: ignore[attr-defined]
        (torch._C._jit_llga_enabled, torch._C._jit_set_llga_enabled),
    ]


_KEPT: deque[Any] = deque(maxlen=100)
"""The graphs that were made last: a node becomes invalid with its graph, even if a caller keeps the node alone."""

HOLDERS = ("prim::TensorExprGroup", "prim::oneDNNFusionGroup", "prim::DifferentiableGraph", "prim::FallbackGraph")
"""Kinds of node that hold a graph, in their attribute "Subgraph"."""


def graph_of(data: Mapping[str, Any]) -> Any:
    """Return a `torch._C.Graph` from its printed form and the graphs that its nodes hold.

    TorchScript prints the graph of a fusion group after the graph that holds it, and its parser ignores this part. So
    each graph is a text of its own here.

        >>> inside = {"ir": "graph(%x : Tensor):\\n  %y : Tensor = aten::exp(%x)\\n  return (%y)", "held": []}
        >>> group = "  %y : Tensor = prim::TensorExprGroup[held=0](%x)"
        >>> graph = graph_of({"ir": f"graph(%x : Tensor):\\n{group}\\n  return (%y)", "held": [inside]})
        >>> [node.kind() for node in next(graph.nodes()).g("Subgraph").nodes()]
        ['aten::exp']

    The attribute `held` of a node numbers its graph in the list `held`. Raises `CaptureError` for text that
    TorchScript cannot parse.
    """
    try:
        graph: Any = torch._C.parse_ir(data["ir"])
    except RuntimeError as error:
        raise CaptureError(f"TorchScript cannot parse this graph: {error}") from error
    for kind in HOLDERS:
        for node in graph.findAllNodes(kind, recurse=True):
            node.g_("Subgraph", graph_of(data["held"][node.i("held")]))
    _KEPT.append(graph)
    return graph


def rewrite_script(graph: Any, pattern: str, replacement: str) -> Any:
    """Return a copy of a TorchScript graph in which every match of a pattern is replaced.

        >>> from course_lib.capture import capture
        >>> traced = capture(lambda x: torch.relu(torch.exp(x)), (torch.ones(2),), mode="trace")
        >>> pattern = "graph(%x):\\n  %e = aten::exp(%x)\\n  %r = aten::relu(%e)\\n  return (%r)"
        >>> replacement = "graph(%x):\\n  %e = aten::exp(%x)\\n  return (%e)"
        >>> [node.kind() for node in rewrite_script(traced.graph, pattern, replacement).nodes()]
        ['aten::exp']

    Inputs of both texts correspond by position. TorchScript only looks for the nodes: it compares no values of
    constants, and does not check that the replacement computes the same. Raises `CaptureError` for text that is no
    graph.
    """
    copy = graph.copy()
    try:
        torch._C._jit_pass_custom_pattern_based_rewrite_graph(pattern, replacement, copy)
    except RuntimeError as error:
        raise CaptureError(f"TorchScript cannot use this pattern: {error}") from error
    return copy
