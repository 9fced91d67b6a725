"""Reach operators that an answer registered with PyTorch, by their names, as the dispatcher does."""

from collections.abc import Callable
from typing import Any

import torch

from autograder.worker.source import AnswerError

OPERATOR, FORMS = "torch.ops.", "forms of torch.ops."


class NoOperatorError(AnswerError):
    """The answer registered no operator of that name, or one into which PyTorch looks."""


def is_operator(name: str) -> bool:
    """Tell whether the host asks for an operator, or for the forms of its outputs, in place of a function."""
    return name.startswith((OPERATOR, FORMS))


def operator(name: str) -> Callable[..., Any]:
    """Return the operator, or a function that returns shape and strides of each of its outputs on fake tensors."""
    namespace, _, own = name.partition("torch.ops.")[2].partition(".")
    qualified = f"{namespace}::{own}"
    found = getattr(getattr(torch.ops, namespace), own, None)
    if not isinstance(found, torch._ops.OpOverloadPacket):
        raise NoOperatorError(
            f'The answer registers no operator "{qualified}". Put '
            f'`@torch.library.custom_op("{qualified}", mutates_args=())` above its function.'
        )
    if any(_is_composite(qualified, overload) for overload in found.overloads()):
        raise NoOperatorError(
            f'"{qualified}" is registered as a composite of other operators, and PyTorch derives those. A launch of a '
            "kernel has no derivative: register the operator with one of its own."
        )
    return _forms(found) if name.startswith(FORMS) else found


def _is_composite(qualified: str, overload: str) -> bool:
    schema = qualified if overload == "default" else f"{qualified}.{overload}"
    try:
        return torch._C._dispatch_has_kernel_for_dispatch_key(schema, "CompositeImplicitAutograd")
    except RuntimeError:  # an overload of TorchScript alone, which the dispatcher does not know
        return False


def _forms(found: Callable[..., Any]) -> Callable[..., tuple[torch.Tensor, ...]]:
    def forms(*args: Any) -> tuple[torch.Tensor, ...]:
        from torch._subclasses.fake_tensor import FakeTensorMode

        with FakeTensorMode() as mode:
            given = [mode.from_tensor(arg) if isinstance(arg, torch.Tensor) else arg for arg in args]
            outputs = found(*given)
        several = outputs if isinstance(outputs, tuple | list) else (outputs,)
        return tuple(torch.tensor([*map(int, output.shape), *map(int, output.stride())]) for output in several)

    return forms
