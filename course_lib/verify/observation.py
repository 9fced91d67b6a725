"""Run a program once, and record everything that could differ from another program."""

import copy
import random
import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import nn
from torch.utils._pytree import TreeSpec, tree_flatten

from course_lib.isolation import backward_to, seed_everything
from course_lib.layouts import dense, kind_of

Program = nn.Module | Callable[..., object]


@dataclass(frozen=True)
class Observation:
    """The results and effects of one run; tensors are detached copies, which later runs do not change."""

    outputs: tuple[object, ...]
    structure: TreeSpec
    strides: tuple[tuple[int, ...] | str | None, ...]  # of an output that is not plain, such as a sparse one, its kind
    aliases: tuple[
        tuple[str, ...], ...
    ]  # of each output: inputs, parameters and outputs before it that share its memory
    inputs_after: tuple[object, ...]
    buffers_after: Mapping[str, torch.Tensor]
    input_gradients: tuple[torch.Tensor | None, ...] = ()
    parameter_gradients: Mapping[str, torch.Tensor | None] = field(default_factory=dict)
    random_states: tuple[object, ...] = ()  # of torch and of Python, after the forward pass


def prepared(program: Program, dtype: torch.dtype, mode: str) -> Program:
    """Return a copy of a module with the given dtype and mode; a function is returned unchanged."""
    if not isinstance(program, nn.Module):
        return program
    return copy.deepcopy(program).to(dtype).train(mode == "train")


def at_precision(inputs: Sequence[object], dtype: torch.dtype) -> list[object]:
    """Return copies of the inputs with floating-point tensors converted to `dtype`; strides are kept where possible."""
    return [_converted(value, dtype) for value in inputs]


def observe(program: Program, inputs: Sequence[object], *, gradients: bool, seed: int) -> Observation | Exception:
    """Run `program` on copies of `inputs`, with a backward pass if `gradients`; return the observation.

    What the program or its backward pass raises is returned too.
    """
    leaves, given, parameters = _arguments(program, inputs, gradients)
    for parameter in parameters.values():
        parameter.grad = None
    _seed(seed)
    try:
        with torch.set_grad_enabled(gradients):
            outputs, structure = tree_flatten(program(*given))
        random_states = (digest_of_random_state(), random.getstate())
        if gradients:
            backward_to((*leaves, *parameters.values()), outputs, seed)
    except Exception as error:  # whatever a program does on these inputs
        return error
    held = {f"input {number}": value for number, value in enumerate(given)} | parameters
    return Observation(
        outputs=tuple(_detached(value) for value in outputs),
        structure=structure,
        strides=tuple(_strides(value) if isinstance(value, torch.Tensor) else None for value in outputs),
        aliases=tuple(
            _aliases(value, held | {f"output {other}": outputs[other] for other in range(number)})
            for number, value in enumerate(outputs)
        ),
        inputs_after=tuple(_detached(value) for value in given),
        buffers_after={n: dense(b.detach()).clone() for n, b in _buffers(program).items()},
        input_gradients=tuple(_gradient_of(value) if isinstance(value, torch.Tensor) else None for value in leaves),
        parameter_gradients={name: _gradient_of(parameter) for name, parameter in parameters.items()},
        random_states=random_states,
    )


def differentiated_twice(program: Program, inputs: Sequence[object], *, seed: int) -> dict[str, torch.Tensor | None]:
    """Run `program` forward, backward, and backward again; return the gradients of the gradients by name."""
    leaves, given, parameters = _arguments(program, inputs, gradients=True)
    named = {f"input {number}": leaf for number, leaf in enumerate(leaves)} | parameters
    wanted = {n: t for n, t in named.items() if isinstance(t, torch.Tensor) and t.requires_grad}
    _seed(seed)
    roots, _ = tree_flatten(program(*given))
    first = _gradients(dict(enumerate(roots)), wanted, seed, create_graph=True)
    return _gradients(first, wanted, seed + 1, create_graph=False)


def _gradients(
    roots: Mapping[Any, object], wanted: Mapping[str, torch.Tensor], seed: int, *, create_graph: bool
) -> dict[str, torch.Tensor | None]:
    """Return the gradients of roots; the random weights of a root depend on its name, the seed and its shape."""
    chosen = {name: root for name, root in roots.items() if isinstance(root, torch.Tensor) and root.requires_grad}
    weights = []
    for name, root in chosen.items():
        generator = torch.Generator().manual_seed(seed + zlib.crc32(str(name).encode()))
        weights.append(torch.randn(root.shape, generator=generator, dtype=torch.float64).to(root))
    if not chosen:
        return dict.fromkeys(wanted)
    found = torch.autograd.grad(
        list(chosen.values()), list(wanted.values()), weights, create_graph=create_graph, allow_unused=True
    )
    return {name: None if one is None else dense(one) for name, one in zip(wanted, found, strict=True)}


def _arguments(
    program: Program, inputs: Sequence[object], gradients: bool
) -> tuple[list[object], list[object], dict[str, nn.Parameter]]:
    """Return the inputs as leaves, copies of them that the program may write to, and the parameters."""
    leaves = [_leaf(value, gradients) for value in inputs]
    given = [value.clone() if isinstance(value, torch.Tensor) else copy.deepcopy(value) for value in leaves]
    return leaves, given, dict(program.named_parameters()) if isinstance(program, nn.Module) else {}


def _seed(seed: int) -> None:
    seed_everything(seed)
    random.seed(seed)


def digest_of_random_state() -> int:
    """Return a short number that depends on the random state of torch on the CPU."""
    return zlib.crc32(torch.get_rng_state().numpy().tobytes())


def _converted(value: object, dtype: torch.dtype) -> object:
    if not isinstance(value, torch.Tensor):
        return copy.deepcopy(value)
    return value.detach().to(dtype, copy=True) if value.dtype.is_floating_point else value.detach().clone()


def _leaf(value: object, gradients: bool) -> object:
    if isinstance(value, torch.Tensor):
        return value.detach().clone().requires_grad_(gradients and value.dtype.is_floating_point)
    return value


def _detached(value: object) -> object:
    return dense(value.detach()).clone() if isinstance(value, torch.Tensor) else value


def _strides(value: torch.Tensor) -> tuple[int, ...] | str:
    return kind_of(value) or value.stride()


def _gradient_of(leaf: torch.Tensor) -> torch.Tensor | None:
    return None if leaf.grad is None else dense(leaf.grad)  # that of nn.Embedding(sparse=True) is sparse


def _buffers(program: Program) -> dict[str, torch.Tensor]:
    return dict(program.named_buffers()) if isinstance(program, nn.Module) else {}


def _aliases(value: object, held: Mapping[str, object]) -> tuple[str, ...]:
    if not isinstance(value, torch.Tensor) or kind_of(value) or value.numel() == 0:
        return ()
    memory = _memory(value)
    tensors = {name: one for name, one in held.items() if isinstance(one, torch.Tensor) and not kind_of(one)}
    return tuple(name for name, other in tensors.items() if _memory(other) == memory)


def _memory(tensor: torch.Tensor) -> int:
    storage = tensor.untyped_storage()
    try:
        return storage.data_ptr()
    except RuntimeError:  # a tensor of a class that holds others has no memory of its own
        return int(storage._cdata)
