"""From a node back to the line of source that it came from."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

from course_lib.errors import GraphError

if TYPE_CHECKING:
    from course_lib.capture import SourceLine


def source_of(node: torch.fx.Node) -> SourceLine:
    """Return the user's line from which a node was captured: file, line, function and text.

    It is the innermost line that is neither PyTorch's nor Python's own. Nodes that a pass wrote have the line of
    what they replaced. Raises `GraphError` if the node carries no line: inputs and outputs carry none, and neither
    does anything in a graph that was captured without source lines.
    """
    from course_lib.capture.source import line_in_text  # late: graphs can be read where capturing is masked

    line = line_in_text(node.stack_trace or "")
    if line is None:
        raise GraphError(
            f"Node {node.name!r} ({node.op}) carries no source line. Calls have one if the graph comes from "
            "course_lib.capture.capture(); inputs, outputs and graphs of plain symbolic_trace have none."
        )
    return line
