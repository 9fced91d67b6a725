"""Run a program without side effects: its inputs are copies, and its state is restored."""

import functools
import random
import sys
import sysconfig
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

import torch
from torch import nn
from torch._C import _autograd, _functorch
from torch.autograd import forward_ad
from torch.utils._pytree import tree_map_only

from course_lib.layouts import dense, kind_of

Restore = Callable[[], None]
_STATES = threading.Lock()
"""Held to read or set torch's random state: of two threads that do so at once, one can hold the GIL and wait for the
generator's mutex, while the other holds the mutex and waits for the GIL (torch 2.13)."""


@contextmanager
def preserving(program: object) -> Iterator[None]:
    """Restore at the end, also after a failure, the state that running `program` changes.

    The state is: tensors, attributes and containers of a module and all its parts; the random states of torch, Python
    and NumPy; whether gradients are recorded; the default dtype; autocast; levels of `torch.func`. Other effects of a
    program (a global list, a file) are not undone.
    """
    restore = restore_of([program])
    try:
        yield
    finally:
        restore()


def restore_of(held: Sequence[object]) -> Restore:
    """Return a function that restores the state of `preserving` for all objects of `held`, as often as it is called."""
    restores: list[Restore] = []
    seen: set[int] = set()
    for value in held:
        _remember(value, restores, seen)
    restores += _random_states()
    restore_modes = _modes()

    def restore() -> None:
        restore_modes()  # the first, since operators may fail at a level
        for one in restores:
            one()

    return restore


@contextmanager
def modes_kept() -> Iterator[None]:
    """Restore at the end what a program that fails leaves in between: modes and levels of torch, see `preserving`."""
    restore = _modes()
    try:
        yield
    finally:
        restore()


def _modes() -> Restore:
    grad_enabled, dtype = torch.is_grad_enabled(), torch.get_default_dtype()
    restore_levels, restore_autocast = _levels(), _autocast()

    def restore() -> None:
        restore_levels()
        restore_autocast()
        torch.set_grad_enabled(grad_enabled)
        torch.set_default_dtype(dtype)

    return restore


def _levels() -> Restore:
    """Record the levels of `torch.func` and of forward-mode derivatives; in torch 2.13 these are private.

    A graph has a node that begins a level and one that ends it. If a node in between fails, the level does not end.
    """
    depth, dual = _functorch.get_dynamic_layer_stack_depth(), forward_ad._current_level
    forward, in_place = torch._C._is_fwd_grad_enabled(), _functorch.get_inplace_requires_grad_allowed()
    message = _autograd._saved_tensors_hooks_get_disabled_error_message()

    def restore() -> None:
        while forward_ad._current_level > dual:
            forward_ad.exit_dual_level(level=forward_ad._current_level)
        if _functorch.get_dynamic_layer_stack_depth() > depth:
            _functorch.pop_dynamic_layer_stack_and_undo_to_depth(depth)
        torch._C._set_fwd_grad_enabled(forward)
        _functorch.set_inplace_requires_grad_allowed(in_place)
        if message is None:
            _autograd._saved_tensors_hooks_enable()
        else:
            _autograd._saved_tensors_hooks_disable(message)

    return restore


def _autocast() -> Restore:
    """Record autocast on the CPU and on the accelerator."""
    accelerator = torch.accelerator.current_accelerator() if torch.accelerator.is_available() else None
    kinds = ("cpu",) if accelerator is None else ("cpu", accelerator.type)
    casts = [(kind, torch.is_autocast_enabled(kind), torch.get_autocast_dtype(kind)) for kind in kinds]
    nesting, cached = _autocast_nesting(), torch.is_autocast_cache_enabled()

    def restore() -> None:
        for kind, enabled, dtype in casts:
            torch.set_autocast_enabled(kind, enabled)
            torch.set_autocast_dtype(kind, dtype)
        torch.set_autocast_cache_enabled(cached)
        while _autocast_nesting() > nesting:
            torch.autocast_decrement_nesting()

    return restore


def _autocast_nesting() -> int:
    torch.autocast_increment_nesting()
    return int(torch.autocast_decrement_nesting())


def fresh_inputs(inputs: Sequence[object]) -> tuple[Any, ...]:
    """Return copies of the inputs, with new tensors and containers; what is one tensor stays one tensor."""
    copies: dict[int, torch.Tensor] = {}

    def fresh(tensor: torch.Tensor) -> torch.Tensor:
        if id(tensor) not in copies:
            copies[id(tensor)] = tensor.detach().clone().requires_grad_(tensor.requires_grad)
        return copies[id(tensor)]

    return tuple(tree_map_only(torch.Tensor, fresh, list(inputs)))


def backward_to(leaves: Iterable[object], results: Iterable[object], seed: int, *, keep_graph: bool = False) -> None:
    """Run the backward pass of all results at once, and leave gradients in `leaves` only.

    No other tensor gets a gradient, and no hook of another leaf runs: a program may use results of operators that its
    caller still needs. Their graph is not freed, if it leads to no leaf or with `keep_graph`, which Inductor's code may
    refuse. The weights of the results depend on the seed and the shapes only.
    """
    roots = [one for one in results if isinstance(one, torch.Tensor) and one.requires_grad]
    generator = torch.Generator().manual_seed(seed)
    weights = [torch.randn(root.shape, generator=generator, dtype=torch.float64).to(root) for root in roots]
    tensors = (one for one in leaves if isinstance(one, torch.Tensor) and one.is_leaf and one.requires_grad)
    wanted = {id(one): one for one in tensors}
    if roots and wanted:
        torch.autograd.backward(roots, weights, retain_graph=keep_graph, inputs=list(wanted.values()))


def _remember(value: object, restores: list[Restore], seen: set[int]) -> None:
    """Record how to restore `value` and all that it holds."""
    if id(value) in seen:
        return
    seen.add(id(value))
    if isinstance(value, torch.Tensor):
        restores.append(_tensor_restore(value))
    elif isinstance(value, nn.Module):
        _remember(value.__dict__, restores, seen)
    elif isinstance(value, (dict, list, set, deque)):
        restores.append(_container_restore(value))
        for part in list(value.values() if isinstance(value, dict) else value):
            _remember(part, restores, seen)
    elif isinstance(value, tuple):
        for part in value:
            _remember(part, restores, seen)
    else:
        _remember_object(value, restores, seen)


def _remember_object(value: Any, restores: list[Restore], seen: set[int]) -> None:
    """Record how to restore a source of random numbers, or the attributes of an object of the user's own class."""
    if isinstance(value, random.Random) and not isinstance(value, random.SystemRandom):
        python = value.getstate()
        restores.append(lambda: value.setstate(python))
    elif isinstance(value, torch.Generator):
        own = value.get_state()
        restores.append(functools.partial(_set_state, value, own))
    elif type(value).__module__.partition(".")[0] == "numpy":
        _remember_numpy(value, restores, seen)
    elif isinstance(value, SimpleNamespace) or is_users(type(value).__module__):
        _remember(getattr(value, "__dict__", None), restores, seen)


def imported_numpy() -> Any:
    """Return NumPy if something has imported it, or None: PyTorch works without it, and so do we."""
    return sys.modules.get("numpy")


def _set_state(generator: torch.Generator, state: torch.Tensor) -> None:
    generator.set_state(state)


def _remember_numpy(value: Any, restores: list[Restore], seen: set[int]) -> None:
    """Record how to restore an array, unless it lies in a file, or a generator of NumPy."""
    np = imported_numpy()
    if isinstance(value, np.ndarray) and value.flags.writeable and not isinstance(value, np.memmap):
        numbers = value.copy()
        restores.append(lambda: np.copyto(value, numbers))
        for part in value.flat if value.dtype.hasobject else ():
            _remember(part, restores, seen)
    elif isinstance(value, np.random.Generator | np.random.BitGenerator):
        bits = value.bit_generator if isinstance(value, np.random.Generator) else value
        restores.append(functools.partial(setattr, bits, "state", bits.state))
    elif isinstance(value, np.random.RandomState):
        restores.append(functools.partial(value.set_state, value.get_state()))


LIBRARIES = tuple({sysconfig.get_path(name) for name in ("stdlib", "platstdlib", "purelib", "platlib")})


@functools.cache
def is_users(module_name: str) -> bool:
    """Tell whether a module is the user's own: neither of Python nor of an installed package.

    Of this library the programs are the user's, for a lesson to capture them. Its machinery is not: caches that it
    fills while a program is captured must stay filled.
    """
    if module_name.partition(".")[0] == "course_lib":
        return module_name.startswith("course_lib.models")
    file = getattr(sys.modules.get(module_name), "__file__", None)
    return module_name == "__main__" or (file is not None and not file.startswith(LIBRARIES))


def _tensor_restore(tensor: torch.Tensor) -> Restore:
    return _numbers_restore(tensor) if kind_of(tensor) else _plain_restore(tensor)


def _numbers_restore(tensor: torch.Tensor) -> Restore:
    """Record the numbers of a tensor that is not plain, such as a sparse one, which has no memory of its own."""
    values = tensor.detach().clone()

    def restore() -> None:
        if not torch.equal(dense(tensor.detach()), dense(values)):
            with torch.no_grad():
                tensor.copy_(values)

    return restore


def _plain_restore(tensor: torch.Tensor) -> Restore:
    values, needs_gradient = tensor.detach().clone(), tensor.requires_grad
    gradient = tensor.grad if _keeps_gradient(tensor) else None
    gradient_values = None if gradient is None else gradient.detach().clone()
    memory = tensor.data  # the same memory, also if the tensor is resized or given other data
    was_leaf = tensor.is_leaf

    def restore() -> None:
        if was_leaf and not tensor.is_leaf and not tensor._is_view():
            tensor.detach_()  # it was written in place, with values that have a gradient
        if tensor.shape != memory.shape or _moved(tensor, memory):
            tensor.data = memory
        if tensor.is_leaf and tensor.requires_grad != needs_gradient:
            tensor.requires_grad_(needs_gradient)
        # The version counter would be cheaper, but batch_norm changes its statistics without incrementing it.
        if not tensor.is_meta and not _equal(tensor, values):
            with torch.no_grad():
                tensor.copy_(values)
        if _keeps_gradient(tensor) and tensor.grad is not gradient:
            tensor.grad = gradient
        if gradient is not None and gradient_values is not None and not _equal(gradient, gradient_values):
            with torch.no_grad():
                gradient.copy_(gradient_values)

    return restore


def _keeps_gradient(tensor: torch.Tensor) -> bool:
    return tensor.is_leaf or tensor.retains_grad


def _moved(tensor: torch.Tensor, memory: torch.Tensor) -> bool:
    ordinary = tensor.layout == torch.strided and tensor.device.type in ("cpu", "cuda")
    return ordinary and tensor.data_ptr() != memory.data_ptr()


def _equal(tensor: torch.Tensor, values: torch.Tensor) -> bool:
    """Tell whether two tensors have the same values; unlike for `torch.equal`, a NaN is the same as itself."""
    tensor, values = dense(tensor), dense(values)  # a gradient may be sparse
    if tensor.shape != values.shape or torch.equal(tensor, values):
        return tensor.shape == values.shape
    return torch.allclose(tensor, values, rtol=0, atol=0, equal_nan=True)


def _container_restore(container: Any) -> Restore:
    before = list(container.items() if isinstance(container, dict) else container)
    identities = [id(part) for part in before]

    def restore() -> None:
        now = list(container.items() if isinstance(container, dict) else container)
        if isinstance(container, dict):
            if [(key, id(value)) for key, value in now] != [(key, id(value)) for key, value in before]:
                container.clear()
                for key, value in before:  # `update` of a Counter would count
                    container[key] = value
        elif [id(part) for part in now] != identities:
            container.clear()
            container.extend(before) if isinstance(container, (list, deque)) else container.update(before)

    return restore


def _random_states() -> list[Restore]:
    """Record the random states as they are."""
    python = random.getstate()
    with _STATES:
        cpu = torch.get_rng_state()
    restores: list[Restore] = [lambda: random.setstate(python), lambda: _set_random_state(cpu)]
    if torch.cuda.is_available() and torch.cuda.is_initialized():
        cuda = torch.cuda.get_rng_state_all()
        restores.append(lambda: torch.cuda.set_rng_state_all(cuda))
    np = imported_numpy()
    if np is not None:
        restores.append(functools.partial(np.random.set_state, np.random.get_state()))
    return restores


def _set_random_state(state: torch.Tensor) -> None:
    with _STATES:
        torch.set_rng_state(state)


def seed_everything(seed: int) -> None:
    """Set the random state of the CPU and of every accelerator, as `torch.manual_seed` does.

    Without an accelerator, `torch.manual_seed` stores a call for each kind of accelerator, with the call stack, and
    keeps it as long as the process lives. This function does not.
    """
    if torch.accelerator.is_available():
        torch.manual_seed(seed)
    else:
        torch.default_generator.manual_seed(seed)
