"""`capture`: one function for all the ways to turn a program into a graph.

| mode | what happens |
|---|---|
| "fx" | the program runs once on proxies, and `torch.fx` records |
| "trace" | it runs once on the inputs, and TorchScript records its operators |
| "script" | TorchScript compiles its source text |
| "make_fx" | it runs once on the inputs, and operators that reach the dispatcher are recorded |
| "dynamo" | its bytecode is read: several graphs, with guards, and Python between them |
| "export" | one graph for everything, or a refusal |
| "aot" | forward and backward together, then apart: `graphs["joint"]`, `["forward"]`, `["backward"]` |
| "lazy" | each call records a graph again, and equal graphs share compiled code |
"""

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from torch import nn
from torch.nn.parameter import is_lazy

from course_lib.capture.aot import capture_aot
from course_lib.capture.captured import Captured, picklable
from course_lib.capture.dynamo import capture_dynamo
from course_lib.capture.export import capture_export
from course_lib.capture.fx_tracing import LeafModule, capture_fx, capture_make_fx
from course_lib.capture.lazy import capture_lazy
from course_lib.capture.torchscript import capture_script, capture_trace
from course_lib.errors import CaptureError
from course_lib.isolation import fresh_inputs, preserving
from course_lib.silence import kept_warnings, no_tracebacks

Program = nn.Module | Callable[..., Any]

Capturer = Callable[[Program, tuple[Any, ...], dict[str, Any]], Captured]

CAPTURERS: Mapping[str, Capturer] = {
    "trace": capture_trace,
    "script": capture_script,
    "make_fx": capture_make_fx,
    "dynamo": capture_dynamo,
    "aot": capture_aot,
    "lazy": capture_lazy,
}
MODES = ("trace", "script", "fx", "make_fx", "dynamo", "export", "aot", "lazy")
NEED_NO_INPUTS = ("script", "fx")
PLAIN = (bool, int, float, str)  # types of defaults that can become constants of the graph


def capture(
    model: Program,
    example_inputs: Sequence[object] = (),
    *,
    example_kwarg_inputs: Mapping[str, object] | None = None,
    mode: str = "fx",
    leaf_modules: Sequence[LeafModule] = (),
    concrete_args: Mapping[str, object] | None = None,
    dynamic_shapes: object = None,
) -> Captured:
    """Turn a module or function into a graph.

        >>> capture(lambda x: torch.relu(x) + 1).graph_module(torch.zeros(2))
        tensor([1., 1.])
        >>> capture(torch.nn.ReLU(), (torch.zeros(2),), mode="export").captured_by
        'torch.export.export'

    `mode` is "fx", "trace" and "script" (both TorchScript), "make_fx", "dynamo", "export", "aot" or "lazy"; the
    docstring of `course_lib.capture.modes` tells what happens in each. `example_kwarg_inputs` are inputs by name,
    as in `{"input_ids": tokens}`, in addition to those by position or instead of them.

    Modes "fx" and "script" need no example inputs. For "fx", `leaf_modules` names classes, or paths such as "layers.0",
    that stay one node each, and `concrete_args` fixes arguments by name: `{"mask": None}` captures the program without
    a mask, and the graph has no such input. Arguments without an example input are fixed at their defaults in the same
    way. For "export", `dynamic_shapes` is that of `torch.export`. In mode "lazy" the result uses a copy of `model`;
    otherwise it shares parameters with `model`. The model, the inputs and the random states are not changed.

    Raises `CaptureError`, which says what failed, in which line of the program, and what to try.
    """
    _check(model, mode, leaf_modules, concrete_args, dynamic_shapes)
    _check_inputs(example_inputs, example_kwarg_inputs, mode)
    inputs, keyword_inputs = fresh_inputs((tuple(example_inputs), dict(example_kwarg_inputs or {})))
    capturers: dict[str, Capturer] = {
        **CAPTURERS,
        "fx": lambda model, inputs, named: capture_fx(
            model, leaf_modules, {**left_out(model, inputs, named), **(concrete_args or {})}
        ),
        "export": lambda model, inputs, named: capture_export(model, inputs, named, dynamic_shapes),
    }
    return _captured(capturers[mode], model, inputs, keyword_inputs)


def _captured(capturer: Capturer, model: Program, inputs: Any, keyword_inputs: Any) -> Captured:
    """Capture without changing the model; keep the warnings of PyTorch, and make the graphs picklable."""
    with preserving(model), no_tracebacks(), kept_warnings() as caught:
        captured = capturer(model, inputs, keyword_inputs)
    for graph_module in captured.graphs.values():
        picklable(graph_module)
    return replace(captured, warnings=tuple(f"{said.category.__name__}: {said.message}" for said in caught))


def left_out(model: Program, inputs: Sequence[object], keyword_inputs: Mapping[str, object]) -> dict[str, object]:
    """Return the arguments that a call with these inputs leaves at their defaults; none for a call without inputs."""
    forward = model.forward if isinstance(model, nn.Module) else model
    if not (inputs or keyword_inputs):
        return {}
    try:
        signature = inspect.signature(forward)
        given = signature.bind(*inputs, **keyword_inputs).arguments
    except (TypeError, ValueError):  # no signature, or inputs that do not fit it
        return {}
    known = {name: one.default for name, one in signature.parameters.items() if name not in given}
    return {name: default for name, default in known.items() if default is None or type(default) in PLAIN}


def _check(model: object, mode: str, leaf_modules: object, concrete_args: object, export_only: object) -> None:
    if mode not in MODES:
        raise CaptureError(f"capture got mode={mode!r}; it knows {', '.join(map(repr, MODES))}.")
    if not callable(model):
        raise CaptureError(f"capture got a {type(model).__name__}; it expects a module or a function.")
    require_initialised("capture", model)
    if (leaf_modules or concrete_args) and mode != "fx":
        raise CaptureError(f'capture got leaf_modules or concrete_args with mode={mode!r}; they belong to mode="fx".')
    if not isinstance(concrete_args or {}, Mapping):
        raise CaptureError(f"capture got concrete_args={concrete_args!r:.80}; it expects a dict, from name to value.")
    if export_only is not None and mode != "export":
        raise CaptureError(f'capture got dynamic_shapes with mode={mode!r}; they belong to mode="export".')


def require_initialised(asked_by: str, model: object) -> None:
    """Raise `CaptureError` for a model with lazy modules that have not been called: they have no parameters yet."""
    held = [*model.named_parameters(), *model.named_buffers()] if isinstance(model, nn.Module) else []
    for name, tensor in held:
        if is_lazy(tensor):
            raise CaptureError(
                f"{asked_by} got a {type(model).__name__} whose {name} has no shape yet: a lazy module makes its "
                "parameters in its first call. Call the model once, then capture it."
            )


def require_tuple(asked_by: str, name: str, inputs: object) -> None:
    """Raise `CaptureError` unless these inputs are a tuple or a list."""
    if not isinstance(inputs, (tuple, list)):
        advice = (
            "Inputs by name go to example_kwarg_inputs."
            if isinstance(inputs, Mapping)
            else "One tensor x is given as (x,)."
        )
        raise CaptureError(
            f"{asked_by} got {name} of type {type(inputs).__name__}; it expects a tuple of the arguments. {advice}"
        )


def _check_inputs(example_inputs: object, example_kwarg_inputs: object, mode: str) -> None:
    require_tuple("capture", "example_inputs", example_inputs)
    named = {} if example_kwarg_inputs is None else example_kwarg_inputs
    if not isinstance(named, Mapping) or not all(isinstance(name, str) for name in named):
        raise CaptureError(f"capture got example_kwarg_inputs={named!r:.80}; it expects a dict, from name to input.")
    if not (example_inputs or named) and mode not in NEED_NO_INPUTS:
        raise CaptureError(f"capture got no example_inputs; mode {mode!r} runs the program, so give it a tuple.")
