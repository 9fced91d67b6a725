"""Capture with lazy tensors: operators are recorded, and computed when a value is needed.

Private and undocumented: `torch._lazy` may move, and a build may lack it.
"""

import copy
import functools
from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import nn
from torch.utils._pytree import tree_leaves, tree_map_only

from course_lib.capture.captured import Captured
from course_lib.capture.failure_causes import explaining
from course_lib.capture.fatal_operators import NothingFatalToLazy
from course_lib.errors import CaptureError
from course_lib.isolation import preserving


def capture_lazy(
    model: nn.Module | Callable[..., Any], inputs: tuple[Any, ...], keyword_inputs: Mapping[str, Any]
) -> Captured:
    """Run a copy of the program on lazy tensors and keep the recorded graph; each later call records a graph again."""
    start_backend()
    with explaining("lazy", model):
        lazily = _lazy_copy(model) if isinstance(model, nn.Module) else model

    def run(*given: Any, **named: Any) -> Any:
        moved, moved_by_name = _to((list(given), named), "lazy")
        pairs = zip(tree_leaves((list(given), named)), tree_leaves((moved, moved_by_name)), strict=True)
        tensors = [(one, lazy, lazy._version) for one, lazy in pairs if isinstance(one, torch.Tensor)]
        with NothingFatalToLazy():
            returned = lazily(*moved, **moved_by_name)
        result = _to(returned, "cpu")
        for original, lazy, version in tensors:
            _write_back(original, lazy, version)
        known = {id(lazy): original for original, lazy, _ in tensors}
        for original, lazy in zip((*given, *named.values()), (*moved, *moved_by_name.values()), strict=True):
            _fill_again(original, tree_map_only(torch.Tensor, lambda one: known.get(id(one), one), lazy))
        return result

    with explaining("lazy", model), preserving(lazily):
        before = _run_at_once()
        with NothingFatalToLazy():
            recorded = lazily(*_to(list(inputs), "lazy"), **_to(dict(keyword_inputs), "lazy"))
        breaks = _breaks_since(before)
        _refuse_closed_results(recorded)
        results = [leaf for leaf in tree_leaves(recorded) if isinstance(leaf, torch.Tensor)]
        ir, code = torch._C._lazy._get_tensors_text(results), torch._C._lazy._get_tensors_backend(results)
    module = lazily if isinstance(lazily, nn.Module) else None
    return Captured(mode="lazy", captured_by="torch._lazy", code=code, ir=ir, run=run, module=module, breaks=breaks)


def _run_at_once() -> dict[str, int]:
    """Return how often operators ran at once in this process, by name; what is recorded counts as `lazy::name`."""
    names = [name for name in torch._C._lazy._counter_names() if name.startswith("aten::")]
    return {name: torch._C._lazy._counter_value(name) for name in names}


def _breaks_since(before: Mapping[str, int]) -> tuple[str, ...]:
    return tuple(
        f"lazy tensors do not record {name}: it runs at once, and a new graph begins"
        for name, count in _run_at_once().items()
        if count > before.get(name, 0)
    )


def _refuse_closed_results(returned: object) -> None:
    """Raise an error for an object whose tensors would stay lazy, since PyTorch cannot take it apart."""
    waiting, seen = tree_leaves(returned), set[int]()
    while waiting and len(seen) < MOST_OBJECTS:
        leaf = waiting.pop()
        if isinstance(leaf, torch.Tensor) or id(leaf) in seen:
            continue
        seen.add(id(leaf))
        held = [*getattr(leaf, "__dict__", {}).values(), *(leaf.values() if isinstance(leaf, Mapping) else ())]
        parts = tree_leaves(held)
        if any(isinstance(part, torch.Tensor) for part in parts):
            raise RuntimeError(f"Found {type(leaf)} in output")
        waiting += parts


MOST_OBJECTS = 1000  # that are searched for tensors in one result


def _lazy_copy(model: nn.Module) -> nn.Module:
    """Return a copy on lazy tensors; what is one parameter under several names stays one parameter."""
    copied = copy.deepcopy(model)
    tables = [table for part in copied.modules() for table in (part._parameters, part._buffers)]
    before = [(table, name, id(tensor)) for table in tables for name, tensor in table.items() if tensor is not None]
    copied.to("lazy")
    moved: dict[int, Any] = {}
    for table, name, original in before:
        table[name] = moved.setdefault(original, table[name])
    return copied


@functools.cache
def start_backend() -> None:
    """Start the TorchScript backend of lazy tensors, once a process; it cannot be stopped.

    PyTorch writes a warning about an operator registered twice to the terminal; it is harmless.
    """
    try:
        import torch._lazy.ts_backend as backend

        backend.init()
    except RuntimeError as error:
        if "multiple backend fallbacks" not in str(error):  # this message means that it has been started before
            raise CaptureError(f"lazy tensors cannot be started in this process: {error}") from error
    except (ImportError, AttributeError) as error:
        raise CaptureError(
            f"torch {torch.__version__} was built without lazy tensors ({error}); capture with another mode."
        ) from error


def _to(value: Any, device: str) -> Any:
    """Move all tensors in `value` to a device, and keep whether each requires a gradient."""
    return tree_map_only(torch.Tensor, lambda tensor: tensor.to(device), value)


def _write_back(original: torch.Tensor, lazy: torch.Tensor, version: int) -> None:
    """Copy into an input what the program wrote into its lazy copy, whose version was `version`.

    A write in place raises the version, and other views of the input see it. An assignment to `data` gives new memory.
    """
    now = lazy.to("cpu")
    if torch.equal(original, now):
        return
    if lazy._version == version or original.shape != now.shape:
        original.data = now.detach()
    else:
        original.data.copy_(now)


def _fill_again(original: Any, now: Any) -> None:
    """Let a list or dict that was an input hold what the program has put into it."""
    if isinstance(original, list):
        original[:] = _to(now, "cpu")
    elif isinstance(original, dict):
        original.clear()
        original.update(_to(now, "cpu"))
