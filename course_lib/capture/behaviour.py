"""Everything that one call of a program does: what it returns, raises, prints, and changes."""

import contextlib
import io
import math
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from operator import attrgetter
from typing import Any

import torch
from torch import nn
from torch.utils._pytree import tree_map

from course_lib.capture.isolation import seed_everything

Value = Any


@dataclass(frozen=True)
class Behaviour:
    """What one call of a program returned, raised, printed and changed."""

    result: Value
    inputs: Value  # after the call
    printed: str
    raised: Exception | None = None
    changed: Mapping[str, Value] = field(default_factory=dict)  # attributes that the call changed -> their new values


def behaviour_of(run: Callable[..., Any], inputs: Sequence[Any], *, seed: int, model: object = None) -> Behaviour:
    """Call `run(*inputs)` with the random states set by `seed`, and return everything that it did.

    `inputs` are used as they are, so give fresh ones. Changes are looked for in `model`, if it is a module.
    """
    before = state_of(model)
    printed = io.StringIO()
    seed_everything(seed)
    random.seed(seed)
    result, raised = None, None
    with contextlib.redirect_stdout(printed):
        try:
            result = run(*inputs)
        except Exception as error:  # whatever the program raises is what is to be seen
            raised = error
    after = state_of(model)
    changed = {name: value for name, value in after.items() if difference(before.get(name), value)}
    return Behaviour(freeze(result), freeze(list(inputs)), printed.getvalue(), raised, changed)


def state_of(model: object) -> dict[str, Value]:
    """Return the tensors and plain attributes of a module and its parts, copied, by path."""
    if not isinstance(model, nn.Module):
        return {}
    state: dict[str, Value] = {}
    for path, module in model.named_modules():
        prefix = f"{path}." if path else ""
        own = {**module._parameters, **module._buffers}
        own |= {name: value for name, value in vars(module).items() if name[0] != "_" and name != "training"}
        state |= {prefix + name: freeze(value) for name, value in own.items()}
    return state


def attribute(model: object, path: str) -> Value:
    """Return what stands at a path such as "layers.0.calls", copied; None if there is nothing."""
    try:
        return freeze(attrgetter(path)(model))
    except AttributeError:
        return None


def freeze(value: Value) -> Value:
    """Return a copy that later calls do not change."""

    def copied(leaf: Value) -> Value:
        return leaf.detach().to("cpu", copy=True) if isinstance(leaf, torch.Tensor) else leaf

    return tree_map(copied, value)


def difference(expected: Value, found: Value) -> str:
    """Return in a few words how `found` differs from `expected`; an empty text if it does not.

    Tensors differ if their dtype or shape does, or their values by more than `torch.testing.assert_close` allows.
    """
    if isinstance(expected, torch.Tensor) and isinstance(found, torch.Tensor):
        return _tensor_difference(expected, found)
    if type(expected) is not type(found):
        return f"a {type(found).__name__} in place of a {type(expected).__name__}"
    if isinstance(expected, dict):
        if list(expected) != list(found):
            return f"keys {', '.join(map(str, found))} in place of {', '.join(map(str, expected))}"
        return _first_difference(list(expected.values()), list(found.values()))
    if isinstance(expected, (list, tuple)):
        if len(expected) != len(found):
            return f"{len(found)} parts in place of {len(expected)}"
        return _first_difference(expected, found)
    if hasattr(expected, "__dict__") and not isinstance(expected, nn.Module) and not callable(expected):
        return difference(vars(expected), vars(found))
    return "" if _same(expected, found) else f"{found!r} in place of {expected!r}"


def _same(expected: Value, found: Value) -> bool:
    if isinstance(expected, float):
        return math.isclose(expected, found, rel_tol=1e-6) or (math.isnan(expected) and math.isnan(found))
    return isinstance(expected, nn.Module) or callable(expected) or bool(expected == found)


def _first_difference(expected: Sequence[Value], found: Sequence[Value]) -> str:
    return next(filter(None, map(difference, expected, found)), "")


def _tensor_difference(expected: torch.Tensor, found: torch.Tensor) -> str:
    expected, found = expected.detach().cpu(), found.detach().cpu()
    if expected.dtype != found.dtype:
        return f"{found.dtype} in place of {expected.dtype}".replace("torch.", "")
    if expected.shape != found.shape:
        return f"shape {list(found.shape)} in place of {list(expected.shape)}"
    try:
        torch.testing.assert_close(found, expected, equal_nan=True)
    except AssertionError:
        off = (found.to(torch.complex128 if found.is_complex() else torch.float64) - expected).abs().max().item()
        return f"off by {off:.2g}"
    return ""
