"""Take an exported program from an answer that exports by itself, and say which sizes the program takes."""

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import torch

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


def sizes_of(program: "ExportedProgram") -> list[list[int | list[str | int | None]]]:
    """Return the sizes that each input may have; see `AskSizes`."""
    names = program.graph_signature.user_inputs
    values = {node.name: node.meta.get("val") for node in program.graph.find_nodes(op="placeholder")}
    return [[_size(each, program) for each in getattr(values.get(str(name)), "shape", ())] for name in names]


def _size(size: Any, program: "ExportedProgram") -> int | list[str | int | None]:
    if isinstance(size, int) or size.node.expr.is_number:  # a symbol that the program fixed is no int
        return int(size)
    known = program.range_constraints.get(size.node.expr)
    # The table can be written to afterwards. Where it says more than the export found, it promises nothing.
    found = size.node.shape_env.bound_sympy(size.node.expr)
    if known is None or not found.issubset(known):
        return [str(size.node.expr), _limit(found.lower), _limit(found.upper)]
    return [str(size.node.expr), _limit(known.lower), _limit(known.upper)]


def _limit(number: Any) -> int | None:
    return int(number) if math.isfinite(float(number)) else None
