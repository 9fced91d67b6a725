"""Record all that one call of a program does: what it returns, raises, prints, draws and changes, and its gradients."""

import random
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from operator import attrgetter
from typing import Any

import torch
from torch import nn
from torch.utils._pytree import tree_leaves, tree_map_only

from course_lib.capture.differences import difference
from course_lib.capture.frozen_values import RandomState, attributes_or, freeze, random_states
from course_lib.capture.outside_state import Variable, tensors_of, values_of
from course_lib.isolation import backward_to, fresh_inputs, imported_numpy, seed_everything
from course_lib.layouts import dense
from course_lib.silence import kept_output

Value = Any
MISSING = "missing"  # said of a gradient
_ATTRIBUTES = attributes_or(lambda part: part)


@dataclass(frozen=True)
class Behaviour:
    """What one call of a program returned, raised, printed, drew and changed."""

    result: Value
    inputs: Value  # after the call
    printed: str
    raised: Exception | None = None
    changed: Mapping[str, Value] = field(default_factory=dict)  # attributes that the call changed -> their new values
    outside: Mapping[str, Value] = field(default_factory=dict)  # variables outside -> their values after the call
    layout: tuple["Layout", ...] = ()  # of each tensor of the result
    moved: tuple[bool, ...] = ()  # whether each input that is a tensor lies in other memory after the call
    gradients: Mapping[str, tuple[Value, ...]] = field(default_factory=dict)  # by owner; of inputs and parameters
    backward_raised: Exception | None = None
    drawn: tuple[RandomState, ...] = ()  # the random states after the call, then after the backward pass


@dataclass(frozen=True)
class Layout:
    """How a tensor of a result lies in memory, and whether gradients flow to it."""

    strides: tuple[int, ...]
    shares: frozenset[str]  # the inputs, parameters and earlier outputs that it shares memory with
    needs_gradient: bool


@dataclass(frozen=True)
class Call:
    """One call: the inputs, the seed of its random numbers, and where state is kept."""

    inputs: Sequence[Any]  # they are copied
    seed: int
    owners: tuple[object, ...] = ()  # modules that may hold the parameters; the state of the first one is recorded
    variables: tuple[Variable, ...] = ()  # outside of the program
    differentiated: bool = False  # whether all inputs of floating point get gradients, as results of other operators


def behaviour_of(run: Callable[..., Any], call: Call) -> Behaviour:
    """Call `run` with the random states set by the seed, and return everything that it did.

    If gradients are recorded, a backward pass from all results follows, with random weights. It reaches the inputs, the
    parameters and the variables, and keeps the graphs of tensors that the program did not make.
    """
    leaves, inputs = _inputs(call)
    parameters = [_parameters(owner) for owner in call.owners] or [{}]
    parameters[0] |= tensors_of(call.variables)
    for tensor in (tensor for owned in parameters for tensor in owned.values() if tensor.is_leaf):
        tensor.grad = None
    before = state_of(call.owners[0] if call.owners else None)
    places = [(tensor, _place(tensor)) for tensor in _tensors(inputs)]
    result, raised, printed = _run(run, inputs, call.seed)
    drawn = random_states()
    layout = _layouts(result, inputs, parameters)
    moved = tuple(_place(tensor) != place for tensor, place in places)
    frozen = freeze(result)  # a backward hook may change it
    failed, printed_later = None, ""
    if raised is None and torch.is_grad_enabled():
        reached = (*leaves, *(tensor for owned in parameters for tensor in owned.values()))
        failed, printed_later = _backward(reached, result, call.seed)
    drawn += random_states()
    after = state_of(call.owners[0] if call.owners else None)
    return Behaviour(
        frozen,
        freeze(inputs),
        printed + printed_later,
        raised,
        {name: value for name, value in after.items() if difference(before.get(name), value)},
        values_of(call.variables),
        layout,
        moved,
        _gradients(leaves, parameters),
        failed,
        drawn,
    )


def _inputs(call: Call) -> tuple[list[torch.Tensor], list[Any]]:
    """Return the leaves among the inputs, and the inputs to call with."""
    inputs = list(fresh_inputs(call.inputs))
    leaves = [tensor for tensor in tree_leaves(inputs) if isinstance(tensor, torch.Tensor)]
    if not call.differentiated:
        return leaves, inputs
    for tensor in leaves:
        tensor.requires_grad_(tensor.is_floating_point() or tensor.is_complex())
    copies = {id(tensor): tensor.clone() for tensor in leaves}  # results of an operator, so they may be written to
    return leaves, tree_map_only(torch.Tensor, lambda tensor: copies[id(tensor)], inputs)


def _run(run: Callable[..., Any], inputs: Sequence[Any], seed: int) -> tuple[Any, Exception | None, str]:
    seed_everything(seed)
    random.seed(seed)
    np = imported_numpy()
    if np is not None:
        np.random.seed(seed)
    with kept_output() as printed:
        try:
            return run(*inputs), None, printed.getvalue()
        except Exception as error:  # an exception is part of the behaviour
            return None, error, printed.getvalue()


def _parameters(owner: object) -> dict[str, torch.Tensor]:
    return {**dict(owner.named_parameters()), **dict(owner.named_buffers())} if isinstance(owner, nn.Module) else {}


def _tensors(value: Any) -> list[torch.Tensor]:
    return [leaf for leaf in tree_leaves(value) if isinstance(leaf, torch.Tensor)]


def _layouts(result: Any, inputs: Any, parameters: Sequence[Mapping[str, torch.Tensor]]) -> tuple[Layout, ...]:
    held = [(f"input {number}", tensor) for number, tensor in enumerate(_tensors(inputs))]
    held += [(name, owned[name]) for owned in parameters for name in parameters[0] if name in owned]
    found = []
    for number, tensor in enumerate(_tensors(result)):
        shares = frozenset(name for name, other in held if _share(tensor, other))
        strides = tuple(stride if size > 1 else 0 for size, stride in zip(tensor.shape, _strides(tensor), strict=True))
        found.append(Layout(strides if tensor.numel() else (), shares, tensor.requires_grad))
        held.append((f"output {number}", tensor))
    return tuple(found)


def _strides(tensor: torch.Tensor) -> tuple[int, ...]:
    return tuple(tensor.stride()) if tensor.layout == torch.strided else (0,) * tensor.dim()


def _share(one: torch.Tensor, other: torch.Tensor) -> bool:
    if {one.layout, other.layout} != {torch.strided} or one.device != other.device or not one.numel():
        return False
    pointer = _pointer(one)
    return pointer is not None and pointer == _pointer(other)


def _place(tensor: torch.Tensor) -> tuple[int | None, tuple[int, ...]]:
    return _pointer(tensor), _strides(tensor)


def _pointer(tensor: torch.Tensor) -> int | None:
    try:
        return tensor.untyped_storage().data_ptr() or None
    except (RuntimeError, NotImplementedError):  # a tensor without memory of its own, such as a lazy one
        return None


def _backward(leaves: Iterable[torch.Tensor], result: Any, seed: int) -> tuple[Exception | None, str]:
    """Run the backward pass of all results at once, and return what it raised and printed."""
    with kept_output() as printed:
        try:
            backward_to(leaves, _tensors(result), seed, keep_graph=True)
        except Exception as error:  # hooks and backward functions of the program may raise anything
            return error, printed.getvalue()
    return None, printed.getvalue()


def _gradients(
    leaves: Iterable[torch.Tensor], parameters: Sequence[Mapping[str, torch.Tensor]]
) -> dict[str, tuple[Value, ...]]:
    """Return the gradients by name; for a parameter, one for each owner that holds it."""
    found: dict[str, tuple[Value, ...]] = {}
    for number, leaf in enumerate(leaves):
        found[f"input {number}"] = (_gradient_of(leaf),)
    for name in parameters[0]:
        held = [owned[name] for owned in parameters if name in owned]
        found[name] = tuple(_gradient_of(tensor) if tensor.is_leaf else None for tensor in held)
    return found


def _gradient_of(leaf: torch.Tensor) -> Value:
    """Return a copy of a gradient; that of a table of nn.Embedding(sparse=True) is made dense, to be compared."""
    return None if leaf.grad is None else freeze(dense(leaf.grad))


def state_of(model: object) -> dict[str, Value]:
    """Return the tensors and plain attributes of a module and its parts, copied, by path."""
    if not isinstance(model, nn.Module):
        return {}
    state: dict[str, Value] = {}
    for path, module in model.named_modules():
        prefix = f"{path}." if path else ""
        own = {**module._parameters, **module._buffers}
        own |= {name: value for name, value in vars(module).items() if name[0] != "_" and name != "training"}
        state |= {prefix + name: freeze(value, _ATTRIBUTES) for name, value in own.items()}
    return state


def attribute(model: object, path: str) -> Value:
    """Return a copy of the attribute at a path such as "layers.0.calls", or None if there is none."""
    try:
        return freeze(attrgetter(path)(model), _ATTRIBUTES)
    except AttributeError:
        return None


def deviation(expected: Behaviour, seen: Behaviour, owners: Sequence[object]) -> str:
    """Return a short text on how a capture differs from its program, or an empty text if it does not."""
    return next(deviations(expected, seen, owners), "")


def deviations(expected: Behaviour, seen: Behaviour, owners: Sequence[object]) -> Iterator[str]:
    """Yield a short text on each kind of difference between a capture and its program."""
    if expected.raised is not None:
        if not seen.raised:
            yield f"a result where the program raises {type(expected.raised).__name__}"
        return
    if said := difference(expected.result, seen.result):
        yield f"the result is {said}" if said.startswith("off") else f"the result has {said}"
    if said := difference(expected.inputs, seen.inputs):
        yield f"the inputs are left otherwise than by the program ({said})"
    elif expected.moved != seen.moved and seen.raised is None:
        yield "the inputs are left in other memory, or with other strides, than by the program"
    if expected.printed != seen.printed:
        yield f"it prints {seen.printed!r} where the program prints {expected.printed!r}"
    yield from _deviations_of_state(expected, seen, owners)
    yield from _deviations_of_layout(expected, seen)
    if expected.drawn != seen.drawn:
        yield "it draws other random numbers than the program"


def _deviations_of_state(expected: Behaviour, seen: Behaviour, owners: Sequence[object]) -> Iterator[str]:
    for path, value in expected.changed.items():
        if all(difference(value, attribute(owner, path)) for owner in owners):
            found = difference(value, attribute(owners[0], path))
            yield f"the attribute {path} is left otherwise than by the program ({found})"
    for label, value in expected.outside.items():
        if said := difference(value, seen.outside.get(label)):
            yield f"{label}, outside of the program, is left otherwise than by the program ({said})"


def _deviations_of_layout(expected: Behaviour, seen: Behaviour) -> Iterator[str]:
    """Compare what values do not show: strides, shared memory, and gradients."""
    pairs = list(zip(expected.layout, seen.layout, strict=False))
    for one, other in pairs:
        if one.strides != other.strides:
            yield f"the result has strides {other.strides} in place of {one.strides}"
        if one.shares != other.shares:
            yield f"the result shares memory with {_names(other.shares)} in place of {_names(one.shares)}"
    yield from _deviations_of_gradients(expected, seen)
    for one, other in pairs:
        if one.needs_gradient != other.needs_gradient:
            yield f"the result {'lacks a' if one.needs_gradient else 'has a'} gradient function"


def _deviations_of_gradients(expected: Behaviour, seen: Behaviour) -> Iterator[str]:
    if expected.backward_raised is not None:
        return
    sizes = [
        float(one.abs().double().max()) for (one, *_) in expected.gradients.values() if one is not None and one.numel()
    ]
    size = max((one for one in sizes if one < float("inf")), default=0.0)
    for name, (value, *_) in expected.gradients.items():
        found = [_gradient_difference(value, other, size) for other in seen.gradients.get(name, (None,))]
        if all(found):
            yield f"the gradient of {name} is {next((said for said in found if said != MISSING), MISSING)}"


def _gradient_difference(expected: Value, found: Value, magnitude: float) -> str:
    """Compare two gradients; a gradient of zeros is the same as none."""
    if expected is None or found is None:
        present = expected if found is None else found
        if present is None or not bool(present.abs().double().any()):
            return ""
        return MISSING if found is None else "there, where the program has none"
    return difference(expected, found, magnitude=magnitude)


def _names(shared: frozenset[str]) -> str:
    return ", ".join(sorted(shared)) or "nothing"
