"""Capture with `torch.export`: the whole program in one graph, or a refusal."""

import inspect
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from typing import Any

import torch
from torch import nn

from course_lib.capture.captured import Captured
from course_lib.capture.failure_causes import explaining
from course_lib.capture.source_lines import lines_of_nodes


class FunctionModule(nn.Module):
    """Wrap a function in a module, since export takes modules only."""

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__()
        self.function = function
        with suppress(ValueError, TypeError):  # a builtin without a signature takes its inputs by position
            inspect.signature(function)
            self.__dict__["forward"] = function  # export looks up the names of inputs there

    def forward(self, *inputs: Any) -> Any:
        """Call the function."""
        return self.function(*inputs)


def capture_export(
    model: nn.Module | Callable[..., Any],
    inputs: tuple[Any, ...],
    keyword_inputs: Mapping[str, Any],
    dynamic_shapes: Any = None,
) -> Captured:
    """Export the program; guards are the sizes that its inputs must have, fixed or in a range."""
    module = model if isinstance(model, nn.Module) else FunctionModule(model)
    if dynamic_shapes is not None and isinstance(module, FunctionModule) and "forward" not in vars(module):
        dynamic_shapes = (tuple(dynamic_shapes),)  # one entry for *inputs
    with explaining("export", model):
        program = torch.export.export(module, inputs, dict(keyword_inputs), dynamic_shapes=dynamic_shapes, strict=False)
        runnable = program.module()
    return Captured(
        mode="export",
        captured_by="torch.export.export",
        code=program.graph_module.code,
        ir=str(program.graph),
        run=runnable,
        graphs={"graph": program.graph_module},
        exported=program,
        module=runnable,
        guards=tuple(_constraints(program)),
        lines=lines_of_nodes([program.graph_module]),
    )


def _constraints(program: torch.export.ExportedProgram) -> Iterator[str]:
    """Yield the constraints on the sizes of the inputs: fixed sizes, and ranges of symbolic ones."""
    inputs = set(program.graph_signature.user_inputs)
    for node in program.graph.find_nodes(op="placeholder"):
        value = node.meta.get("val")
        if node.name in inputs and isinstance(value, torch.Tensor):
            yield from (f"{node.name}.size()[{dim}] == {size}" for dim, size in enumerate(value.shape))
    for symbol, sizes in program.range_constraints.items():
        yield f"{sizes.lower} <= {symbol} <= {sizes.upper}"
