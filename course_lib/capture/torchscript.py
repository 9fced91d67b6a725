"""Capture with TorchScript: record one run ("trace"), or compile the source text ("script").

Both are deprecated; the result holds the warning. The successors are "export" and "dynamo".
"""

import inspect
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import torch
from torch import nn

from course_lib.capture.captured import Captured
from course_lib.capture.failure_causes import explaining, name_of
from course_lib.capture.fatal_operators import NoForwardMode
from course_lib.capture.source_lines import SourceLine, line_in_text
from course_lib.errors import CaptureError

Program = nn.Module | Callable[..., Any]


def capture_trace(model: Program, inputs: tuple[Any, ...], keyword_inputs: Mapping[str, Any]) -> Captured:
    """Run the program once and record its operators; Python decisions and Python numbers become constants."""
    named = _all_by_name(model, inputs, keyword_inputs)
    with explaining("trace", model), NoForwardMode():
        if named:
            script = torch.jit.trace(model, example_kwarg_inputs=named, check_trace=False)
        else:
            script = torch.jit.trace(model, inputs, check_trace=False)
    return from_script("trace", "torch.jit.trace", script)


def _all_by_name(model: Program, inputs: tuple[Any, ...], keyword_inputs: Mapping[str, Any]) -> dict[str, Any]:
    """Return all inputs by name if any is, since `torch.jit.trace` takes all by position or all by name."""
    if not keyword_inputs:
        return {}
    signature = inspect.signature(model.forward if isinstance(model, nn.Module) else model)
    for name in keyword_inputs:
        found = signature.parameters.get(name)
        if found is None or found.kind is not found.POSITIONAL_OR_KEYWORD:
            raise CaptureError(
                f"trace got an input named {name}, which {name_of(model)} does not take by place too; TorchScript "
                "records nothing else, so capture a function of plain arguments that calls it."
            )
    return dict(signature.bind(*inputs, **keyword_inputs).arguments)


def capture_script(model: Program, inputs: tuple[Any, ...], keyword_inputs: Mapping[str, Any]) -> Captured:
    """Compile the program's source text, which may use only the typed subset of Python that TorchScript supports."""
    with explaining("script", model):
        script = torch.jit.script(model)
    return from_script("script", "torch.jit.script", script)


def from_script(mode: str, captured_by: str, script: Any) -> Captured:
    """Describe a `ScriptModule` or `ScriptFunction`; raise `CaptureError` for one with several forward methods."""
    if not hasattr(script, "code"):
        raise CaptureError(
            f"{captured_by} gave a {script.original_name} that has a forward method for each type of input, and so no "
            "single graph; capture a module of your own that calls it."
        )
    return Captured(
        mode=mode,
        captured_by=captured_by,
        code=script.code,
        ir=str(script.inlined_graph),
        run=script,
        script=script,
        module=script if isinstance(script, nn.Module) else None,
        lines=script_lines(script.inlined_graph),
    )


def script_lines(graph: Any) -> Mapping[str, SourceLine]:
    """Return the line of each value that a TorchScript graph computes, by the value's name."""
    found = {}
    for node in _nodes(graph):
        line = _line(node.sourceRange())
        for output in node.outputs():
            if line is not None:
                found[output.debugName()] = line
    return found


def _nodes(block: Any) -> Iterator[Any]:
    for node in block.nodes():
        yield node
        for inner in node.blocks():
            yield from _nodes(inner)


def _line(source_range: str) -> SourceLine | None:
    """Read the origin of a TorchScript node; traced and scripted graphs write it differently."""
    traced = re.findall(r"^(\S.*)\((\d+)\): (\S+)$", source_range, re.MULTILINE)
    if traced:  # the innermost frame comes first
        text = "\n".join(f'File "{file}", line {line}, in {function}' for file, line, function in reversed(traced))
        return line_in_text(text)
    first = re.search(r'File "[^"]+", line \d+', source_range)
    return line_in_text(first[0]) if first else None
