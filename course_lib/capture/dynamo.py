"""Capture with Dynamo: it reads the bytecode, records tensor operations, and leaves the rest to Python.

Private: guards are read from Dynamo's own cache, and the reason of a break from the graph's attribute or from Dynamo's
counters. Dynamo stores its captures with the code object of a function. Here the program gets its own code object, so
your own compiled functions stay compiled, and no call to `torch._dynamo.reset` is needed.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import CodeType, FunctionType, MethodType
from typing import Any

import torch
from torch import fx, nn

from course_lib.capture.captured import Captured
from course_lib.capture.failure_causes import explaining
from course_lib.capture.outside_state import coroutines_of
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
    "`print`": "something is printed",
}
PART = "Dynamo leaves the outermost function to Python and captures functions that it calls"
EXPLANATION = re.compile(r"Explanation: (.+)")
ADDRESS = re.compile(r" at 0x[0-9a-f]+")
OF_TORCH = str(Path(torch.__file__).parent)


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
    with explaining("dynamo", model), _counted() as counted:
        if coroutines := coroutines_of(model):
            raise RuntimeError(f"coroutines end the process: {', '.join(coroutines)}")
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
        breaks=_breaks(first, counted),
        lines=lines_of_nodes(first),
    )


def with_own_code(
    model: nn.Module | Callable[..., Any],
) -> tuple[FunctionType, Callable[[Callable[..., Any]], Callable[..., Any]]]:
    """Return the program as a function with its own code object, and a wrapper for calls of the compiled function.

    Around code in a file of PyTorch's own, Dynamo puts one function, the same for all, whose cache is full after eight.
    """
    if isinstance(model, nn.Module) and isinstance(model.forward, MethodType) and not _hooked(model):
        owner = model.forward.__self__
        method = model.forward.__func__
        if isinstance(method, FunctionType) and not _is_of_torch(method):
            return _copy(method), lambda compiled: lambda *inputs, **named: compiled(owner, *inputs, **named)
    if isinstance(model, FunctionType) and not _is_of_torch(model):
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


def _is_of_torch(function: FunctionType) -> bool:
    return function.__code__.co_filename.startswith(OF_TORCH)


@dataclass
class _Counted:
    """What Dynamo counted in one run: the reasons why it gave code back to Python, and functions that it looked at."""

    reasons: tuple[str, ...] = ()
    functions: int = 0


def _breaks(graphs: Sequence[fx.GraphModule], counted: _Counted) -> tuple[str, ...]:
    """Return the reasons of the graph breaks; those that Dynamo only counted if no graph ends at one.

    Of a program that is one graph, Dynamo looks at one function. Where it sees more, Python runs in between.
    """
    reasons = [getattr(graph, "compile_subgraph_reason", None) for graph in graphs]
    said = [str(reason.reason) for reason in reasons if reason is not None and reason.graph_break] or counted.reasons
    if not said and graphs and counted.functions > 1:
        return (PART,)
    return tuple(map(_in_words, said))


def _in_words(said: str) -> str:
    first, explanation = said.strip().splitlines()[0], EXPLANATION.search(said)
    shown = ADDRESS.sub("", explanation[1] if explanation else first).rstrip(".")
    return next((words for name, words in BREAKS.items() if name in first or name in shown), shown)


@contextmanager
def _counted() -> Iterator[_Counted]:
    """Read Dynamo's counters of one run, and restore them at the end, since they belong to the whole process."""
    from torch._dynamo.utils import counters

    before = {name: counter.copy() for name, counter in counters.items()}
    counters.clear()
    counted = _Counted()
    try:
        yield counted
        counted.reasons, counted.functions = tuple(counters["graph_break"]), counters["frames"]["total"]
    finally:
        counters.clear()
        counters.update(before)
