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
        raise _composite(qualified)

    def call(*args: Any, **options: Any) -> Any:
        outputs = found(*args, **options)
        several = outputs if isinstance(outputs, tuple | list) else (outputs,)
        if not all(_is_one_step(output, [*args, *options.values()]) for output in several):
            raise _composite(qualified)
        return outputs

    return _forms(found) if name.startswith(FORMS) else call


def _composite(qualified: str) -> NoOperatorError:
    return NoOperatorError(
        f'"{qualified}" is registered as a composite of other operators, and PyTorch derives those. A launch of a '
        "kernel has no derivative: register the operator with one of its own."
    )


def _is_one_step(output: object, inputs: list[object]) -> bool:
    """Tell whether the derivative goes from an output to the inputs in one step, as that of one operator does."""
    if not isinstance(output, torch.Tensor) or output.grad_fn is None:
        return True
    steps = [step for step, _ in output.grad_fn.next_functions if step is not None]
    given = [each for each in inputs if isinstance(each, torch.Tensor)]
    return all(any(getattr(s, "variable", None) is g or s is g.grad_fn for g in given) for s in steps)


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
