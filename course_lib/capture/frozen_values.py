"""Copy values so that later calls do not change the copies, and two copies can be compared."""

import pickle
import random
from collections.abc import Callable
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import torch
from torch.utils._pytree import tree_map

from course_lib.isolation import imported_numpy, is_users

PLAIN = (bool, int, float, complex, str, bytes, type(None))


@dataclass(frozen=True)
class RandomState:
    """The state of a generator of random numbers."""

    state: bytes


def freeze(value: Any, other: Callable[[Any], Any] = lambda part: part) -> Any:
    """Return a copy that later calls do not change.

    Tensors, arrays of NumPy and sets are copied, and a generator of random numbers becomes its `RandomState`. `other`
    tells what any other object becomes.
    """
    return tree_map(lambda part: _frozen(part, other), value)


def _frozen(part: Any, other: Callable[[Any], Any]) -> Any:
    if isinstance(part, PLAIN):
        return part
    if isinstance(part, torch.Tensor):
        return part.detach() if part.is_meta else part.detach().to("cpu", copy=True)
    np = imported_numpy()
    if np is not None and isinstance(part, np.ndarray):
        return part.copy()
    if isinstance(part, set):
        return frozenset(part)
    state = _state_of(part)
    return other(part) if state is None else RandomState(pickle.dumps(state))


def _state_of(part: Any) -> object:
    """Return the state of a generator of random numbers, and None of any other object."""
    if isinstance(part, random.Random) and not isinstance(part, random.SystemRandom):
        return part.getstate()
    if isinstance(part, torch.Generator):
        return bytes(part.get_state().tolist())
    np = imported_numpy()
    if np is None:
        return None
    if isinstance(part, np.random.Generator):
        return part.bit_generator.state
    if isinstance(part, np.random.BitGenerator):
        return part.state
    return part.get_state() if isinstance(part, np.random.RandomState) else None


def attributes_or(otherwise: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Return what an object becomes in `freeze`: one of the user's its plain attributes, any other `otherwise`."""

    def attributes(part: Any) -> Any:
        if not (isinstance(part, SimpleNamespace) or is_users(type(part).__module__)):
            return otherwise(part)
        return {name: each for name, each in vars(part).items() if isinstance(each, PLAIN)}

    return attributes


def random_states() -> tuple[RandomState, ...]:
    """Return the random states of torch on the CPU, of Python and, if it was imported, of NumPy."""
    np = imported_numpy()
    states = [bytes(torch.get_rng_state().tolist()), random.getstate()]
    states += [np.random.get_state()] if np is not None else []
    return tuple(RandomState(pickle.dumps(state)) for state in states)
