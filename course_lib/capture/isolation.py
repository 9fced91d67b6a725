"""Run a program without side effects, and record all that one call does.

Inputs are fresh, and the state of the program is restored. A record holds what the call returns, raises, prints, and
changes.
"""

import contextlib
import io
import math
import random
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from operator import attrgetter
from typing import Any

import torch
from torch import nn
from torch.utils._pytree import tree_map_only

Restore = Callable[[], None]


@contextmanager
def preserving(program: object) -> Iterator[None]:
    """Restore at the end, also after a failure, the state that running `program` changes.

    The state is: tensors, attributes and containers of a module and all its parts; the random states of torch, Python
    and NumPy; whether gradients are recorded; the default dtype. Other effects of a program (a global list, a file) are
    not undone.
    """
    restores: list[Restore] = []
    _remember(program, restores, set())
    grad_enabled, dtype, random_states = torch.is_grad_enabled(), torch.get_default_dtype(), _random_states()
    try:
        yield
    finally:
        torch.set_grad_enabled(grad_enabled)
        torch.set_default_dtype(dtype)
        for restore in (*restores, *random_states):
            restore()


def fresh_inputs(inputs: Sequence[object]) -> tuple[Any, ...]:
    """Return copies of the inputs, with new tensors and containers."""

    def fresh(tensor: torch.Tensor) -> torch.Tensor:
        return tensor.detach().clone().requires_grad_(tensor.requires_grad)

    return tuple(tree_map_only(torch.Tensor, fresh, list(inputs)))


def _remember(value: object, restores: list[Restore], seen: set[int]) -> None:
    """Record how to restore `value` and all that it holds."""
    if id(value) in seen:
        return
    seen.add(id(value))
    if isinstance(value, torch.Tensor):
        restores.append(_tensor_restore(value))
    elif isinstance(value, nn.Module):
        _remember(value.__dict__, restores, seen)
    elif isinstance(value, (dict, list, set)):
        restores.append(_container_restore(value))
        for part in list(value.values() if isinstance(value, dict) else value):
            _remember(part, restores, seen)
    elif isinstance(value, tuple):
        for part in value:
            _remember(part, restores, seen)


def _tensor_restore(tensor: torch.Tensor) -> Restore:
    values = tensor.detach().clone()

    def restore() -> None:
        # The version counter would be cheaper, but batch_norm changes its statistics without incrementing it.
        if not tensor.is_meta and not torch.equal(tensor, values):
            with torch.no_grad():
                tensor.copy_(values)

    return restore


def _container_restore(container: Any) -> Restore:
    before = list(container.items() if isinstance(container, dict) else container)
    identities = [id(part) for part in before]

    def restore() -> None:
        now = list(container.items() if isinstance(container, dict) else container)
        if isinstance(container, dict):
            if [(key, id(value)) for key, value in now] != [(key, id(value)) for key, value in before]:
                container.clear()
                container.update(before)
        elif [id(part) for part in now] != identities:
            container.clear()
            container.extend(before) if isinstance(container, list) else container.update(before)

    return restore


def _random_states() -> list[Restore]:
    """Record the random states as they are."""
    python, cpu = random.getstate(), torch.get_rng_state()
    restores: list[Restore] = [lambda: random.setstate(python), lambda: torch.set_rng_state(cpu)]
    if torch.cuda.is_available() and torch.cuda.is_initialized():
        cuda = torch.cuda.get_rng_state_all()
        restores.append(lambda: torch.cuda.set_rng_state_all(cuda))
    numpy = sys.modules.get("numpy")
    if numpy is not None:
        state = numpy.random.get_state()
        restores.append(lambda: numpy.random.set_state(state))
    return restores


def seed_everything(seed: int) -> None:
    """Set the random state of the CPU and of every accelerator, as `torch.manual_seed` does.

    Without an accelerator, `torch.manual_seed` stores a call for each kind of accelerator, with the call stack, and
    keeps it as long as the process lives. This function does not.
    """
    if torch.accelerator.is_available():
        torch.manual_seed(seed)
    else:
        torch.default_generator.manual_seed(seed)


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

    `inputs` are not copied, so pass fresh ones. Changes to `model` are recorded, if it is a module.
    """
    before = state_of(model)
    printed = io.StringIO()
    seed_everything(seed)
    random.seed(seed)
    result, raised = None, None
    with contextlib.redirect_stdout(printed):
        try:
            result = run(*inputs)
        except Exception as error:  # an exception is part of the behaviour
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
    """Return a copy of the attribute at a path such as "layers.0.calls", or None if there is none."""
    try:
        return freeze(attrgetter(path)(model))
    except AttributeError:
        return None


def freeze(value: Value) -> Value:
    """Return a copy that later calls do not change."""
    return tree_map_only(torch.Tensor, lambda tensor: tensor.detach().to("cpu", copy=True), value)


def difference(expected: Value, found: Value) -> str:
    """Return a short text on how `found` differs from `expected`, or an empty text if it does not.

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
