"""Run a program without side effects: fresh inputs, restored state of the program, and seeds of random states."""

import random
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch import nn
from torch.utils._pytree import tree_map

Restore = Callable[[], None]


@contextmanager
def preserving(program: object) -> Iterator[None]:
    """Restore at the end, also after a failure, the state that running `program` changes.

    The state is: tensors, attributes and containers of a module and all its parts; the random states of torch, Python
    and NumPy; whether gradients are recorded. Other effects of a program (a global list, a file) are not undone.
    """
    restores: list[Restore] = []
    _remember(program, restores, set())
    grad_enabled, random_states = torch.is_grad_enabled(), _random_states()
    try:
        yield
    finally:
        torch.set_grad_enabled(grad_enabled)
        for restore in (*restores, *random_states):
            restore()


def fresh_inputs(inputs: Sequence[object]) -> tuple[Any, ...]:
    """Return copies of the inputs, with new tensors and containers."""
    return tuple(tree_map(_fresh, list(inputs)))


def _fresh(value: object) -> object:
    if isinstance(value, torch.Tensor):
        return value.detach().clone().requires_grad_(value.requires_grad)
    return value


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
        # The version counter would be cheaper, but batch_norm changes its statistics without counting.
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
