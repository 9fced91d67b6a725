"""Take an exported program from an answer that exports by itself, with its checks of sizes."""

import math
import operator
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import torch
from torch import fx

from autograder.worker.source import AnswerError

if TYPE_CHECKING:  # the import takes seconds
    from torch.export import ExportedProgram


class NotAnExportError(AnswerError):
    """The function returned something other than an exported program, or PyTorch refused to export."""


def exported(function: Callable[..., Any], inputs: Sequence[torch.Tensor]) -> "ExportedProgram":
    """Return the program that the function exports for these examples."""
    from torch._dynamo.exc import UserError
    from torch.export import ExportedProgram
    from torch.fx.experimental.symbolic_shapes import ConstraintViolationError, GuardOnDataDependentSymNode

    try:
        program = function(*inputs)
    except (UserError, ConstraintViolationError, GuardOnDataDependentSymNode) as error:
        lines = [line.strip() for line in str(error).splitlines() if line.strip()]
        raise NotAnExportError(f"torch.export refused: {' '.join(lines[:2])[:280]}") from None
    if not isinstance(program, ExportedProgram):
        raise NotAnExportError(
            f"The function returned a {type(program).__name__}; return what torch.export.export gives."
        )
    return program


def with_size_checks(graph_module: fx.GraphModule, ranges: Mapping[Any, Any]) -> fx.GraphModule:
    """Let the graph of an exported program refuse the sizes that `ExportedProgram.module()` refuses.

    `ranges` are the program's `range_constraints`. As PyTorch does, a least size of up to 2 is not checked.
    """
    graph = graph_module.graph
    inputs = graph.find_nodes(op="placeholder")
    with graph.inserting_before(next(node for node in graph.nodes if node.op != "placeholder")):
        for node in inputs:
            for dim, size in enumerate(getattr(node.meta.get("val"), "shape", ())):
                for compare, limit, words in _limits(size, ranges):
                    found = graph.call_function(torch.ops.aten.sym_size.int, (node, dim))
                    fits = graph.call_function(compare, (found, limit))
                    says = f"dimension {dim} of the input `{node.name}` is {words} {limit} in the exported program."
                    graph.call_function(torch.ops.aten._assert_scalar.default, (fits, says))
    graph_module.recompile()
    return graph_module


def _limits(size: Any, ranges: Mapping[Any, Any]) -> Iterator[tuple[Callable[..., Any], int, str]]:
    if isinstance(size, int) or size.node.expr.is_number:  # a symbol that the program fixed is no int
        yield operator.eq, int(size), "fixed at"
    elif found := ranges.get(size.node.expr):
        if found.lower > 2:
            yield operator.ge, int(found.lower), "at least"
        if math.isfinite(float(found.upper)):
            yield operator.le, int(found.upper), "at most"
