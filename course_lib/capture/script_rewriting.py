"""Rewrite a TorchScript graph by a pattern written as IR: TorchScript's own way, from Python."""

from typing import Any

import torch

from course_lib.errors import CaptureError


def rewrite_script(graph: Any, pattern: str, replacement: str) -> Any:
    """Return a copy of a TorchScript graph in which every match of a pattern is replaced.

        >>> from course_lib.capture import capture
        >>> traced = capture(lambda x: torch.relu(torch.exp(x)), (torch.ones(2),), mode="trace")
        >>> pattern = "graph(%x):\\n  %e = aten::exp(%x)\\n  %r = aten::relu(%e)\\n  return (%r)"
        >>> replacement = "graph(%x):\\n  %e = aten::exp(%x)\\n  return (%e)"
        >>> [node.kind() for node in rewrite_script(traced.graph, pattern, replacement).nodes()]
        ['aten::exp']

    Inputs of both texts go together by position. Nothing is asked but that the nodes are there: neither what constants
    are, nor whether both sides mean the same. Raises `CaptureError` for text that is no graph.
    """
    copy = graph.copy()
    try:
        torch._C._jit_pass_custom_pattern_based_rewrite_graph(pattern, replacement, copy)
    except RuntimeError as error:
        raise CaptureError(f"TorchScript cannot use this pattern: {error}") from error
    return copy
