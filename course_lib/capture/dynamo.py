"""Capture with Dynamo: it reads the bytecode, records tensor operations, and leaves the rest to Python.

Private: guards are read from Dynamo's own cache, and the reason of a break from the graph's attribute. Dynamo stores
its captures with the code object of a function. Here the program gets its own code object, so your own compiled
functions stay compiled, and no call to `torch._dynamo.reset` is needed.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from types import CodeType, FunctionType, MethodType
from typing import Any

import torch
from torch import fx, nn

from course_lib.capture.captured import Captured
from course_lib.capture.failure_causes import explaining
from course_lib.capture.source_lines import lines_of_nodes

# Guards on the whole process or on functions of torch itself; they do not concern the program.
AMBIENT = re.compile(
    r"_dynamo_\w+_indices|___check_global_state|___check_torch_function_mode|saved_tensors_hooks|CURRENT_DEVICE"
    r"|___check_(obj|type)_id\(G\["
)

# Dynamo's name for the reason of a graph break -> its explanation.
BREAKS = {
    "generic_jump": "a branch asks for the value of a tensor",
    "Tensor.item": "a tensor is turned into a Python number",
    "print": "something is printed",
}


def capture_dynamo(
    model: nn.Module | Callable[..., Any], inputs: tuple[Any, ...], keyword_inputs: Mapping[str, Any]
) -> Captured:
    """Run the program once under Dynamo; calling the result captures again whenever a guard fails."""
    graphs: list[fx.GraphModule] = []

    def keep(graph_module: fx.GraphModule, example_inputs: object) -> Callable[..., Any]:
        graphs.append(graph_module)
        return graph_module.forward

    function, call = with_own_code(model)
    compiled: Callable[..., Any] = torch.compile(function, backend=keep)
    run = call(compiled)
    with explaining("dynamo", model), _counters_kept():
        run(*inputs, **keyword_inputs)
    first = list(graphs)  # later calls may add guards
    named = {"graph" if len(first) == 1 else f"graph_{index}": graph for index, graph in enumerate(first)}
    return Captured(
        mode="dynamo",
        captured_by="torch._dynamo",
        code="\n".join(graph.code for graph in first),
        ir="\n".join(str(graph.graph) for graph in first),
        run=run,
        graphs=named,
        module=model if isinstance(model, nn.Module) else None,
        guards=guards_of(function.__code__),
        breaks=tuple(_break_reasons(first)),
        lines=lines_of_nodes(first),
    )


def with_own_code(
    model: nn.Module | Callable[..., Any],
) -> tuple[FunctionType, Callable[[Callable[..., Any]], Callable[..., Any]]]:
    """Return the program as a function with its own code object, and a wrapper for calls of the compiled function."""
    if isinstance(model, nn.Module) and isinstance(model.forward, MethodType) and not _hooked(model):
        owner = model.forward.__self__
        method = model.forward.__func__
        if isinstance(method, FunctionType):
            return _copy(method), lambda compiled: lambda *inputs, **named: compiled(owner, *inputs, **named)
    if isinstance(model, FunctionType):
        return _copy(model), lambda compiled: compiled

    def program(*inputs: Any, **keyword_inputs: Any) -> Any:
        return model(*inputs, **keyword_inputs)

    return _copy(program), lambda compiled: compiled


def guards_of(code: CodeType) -> tuple[str, ...]:
    """Return the guards of everything that Dynamo keeps for a code object, without those of the whole process."""
    from torch._dynamo.eval_frame import _debug_get_cache_entry_list

    entries = _debug_get_cache_entry_list(code)
    parts = [part for entry in entries for part in entry.guard_manager.code_parts]
    return tuple(dict.fromkeys(part.strip() for part in parts if not AMBIENT.search(part)))


def _copy(function: Any) -> FunctionType:
    code = function.__code__.replace()
    copied = FunctionType(code, function.__globals__, function.__name__, function.__defaults__, function.__closure__)
    copied.__kwdefaults__ = function.__kwdefaults__
    copied.__dict__.update(function.__dict__)
    copied.__qualname__ = function.__qualname__
    return copied


def _hooked(module: nn.Module) -> bool:
    return bool(module._forward_hooks or module._forward_pre_hooks or module._backward_hooks)


def _break_reasons(graphs: list[fx.GraphModule]) -> Iterator[str]:
    for graph in graphs:
        reason = getattr(graph, "compile_subgraph_reason", None)
        if reason is not None and reason.graph_break:
            said = str(reason.reason).strip().splitlines()[0]
            yield next((words for name, words in BREAKS.items() if name in said), said)


@contextmanager
def _counters_kept() -> Iterator[None]:
    """Restore Dynamo's counters at the end, since they belong to the whole process."""
    from torch._dynamo.utils import counters

    before = {name: counter.copy() for name, counter in counters.items()}
    try:
        yield
    finally:
        counters.clear()
        counters.update(before)
