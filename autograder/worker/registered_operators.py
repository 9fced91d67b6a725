"""Reach operators that an answer registered with PyTorch, by their names, as the dispatcher does.

A word before the name asks about the operator in place of calling it; the answer is tensors, which the host compares.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch

from autograder.worker.source import AnswerError

OPERATOR = "torch.ops."
# from before an answer is loaded, which may put others in their place
_HAS_KERNEL = torch._C._dispatch_has_kernel_for_dispatch_key
_GRAD_FN = torch._C.TensorBase.__dict__["grad_fn"].__get__
Outputs = tuple[torch.Tensor, ...]


class NoOperatorError(AnswerError):
    """The answer registered no operator of that name, or one into which PyTorch looks."""


class NoSizeError(AnswerError):
    """A size on fake tensors depends on something else than the sizes of the operator's arguments."""


def is_operator(name: str) -> bool:
    """Tell whether the host asks for an operator, or about one, in place of a function."""
    before, found, _ = name.partition(OPERATOR)
    return bool(found) and before in ("", *_ABOUT)


def operator(name: str) -> Callable[..., Any]:
    """Return the operator, or a function that answers what the words before its name ask for."""
    about, _, qualified = name.partition(OPERATOR)
    namespace, _, own = qualified.partition(".")
    qualified = f"{namespace}::{own}"
    found = getattr(getattr(torch.ops, namespace), own, None)
    if not isinstance(found, torch._ops.OpOverloadPacket):
        raise NoOperatorError(
            f'The answer registers no operator "{qualified}". Put '
            f'`@torch.library.custom_op("{qualified}", mutates_args=...)` above its function, with the names of the '
            "arguments that it writes to, () if there are none."
        )
    if any(_is_composite(qualified, overload) for overload in found.overloads()):
        raise _composite(qualified)

    def call(*args: Any, **options: Any) -> Any:
        outputs = found(*args, **options)
        several = outputs if isinstance(outputs, tuple | list) else (outputs,)
        if not all(_is_one_step(output, [*args, *options.values()]) for output in several):
            raise _composite(qualified)
        return outputs

    return (lambda *args: _ABOUT[about](found, args)) if about else call


def _composite(qualified: str) -> NoOperatorError:
    return NoOperatorError(
        f'"{qualified}" is registered as a composite of other operators, and PyTorch derives those. A launch of a '
        "kernel has no derivative: register the operator with one of its own."
    )


def _is_one_step(output: object, inputs: list[object]) -> bool:
    """Tell whether the derivative goes from an output to the inputs in one step, as that of one operator does."""
    last = _GRAD_FN(output) if isinstance(output, torch.Tensor) else None
    if last is None:
        return True
    steps = [step for step, _ in last.next_functions if step is not None]
    given = [each for each in inputs if isinstance(each, torch.Tensor)]
    return all(any(getattr(s, "variable", None) is g or s is _GRAD_FN(g) for g in given) for s in steps)


def _is_composite(qualified: str, overload: str) -> bool:
    schema = qualified if overload == "default" else f"{qualified}.{overload}"
    try:
        return _HAS_KERNEL(schema, "CompositeImplicitAutograd")
    except RuntimeError:  # an overload of TorchScript alone, which the dispatcher does not know
        return False


def _before_another(found: Any, args: tuple[Any, ...]) -> Outputs:
    """Return the outputs of a call, after which another one on other numbers was made."""
    outputs: Outputs = found(*args)
    found(*(arg.detach().flip(0).requires_grad_() if isinstance(arg, torch.Tensor) else arg for arg in args))
    return outputs


def _fake_forms(found: Any, args: tuple[Any, ...]) -> Outputs:
    """Return shape and strides of each output on fake tensors."""
    return _forms(_on_fake_tensors(found, args))


def _on_fake_tensors(found: Any, args: tuple[Any, ...]) -> Any:
    from torch._subclasses.fake_tensor import FakeTensorMode

    with FakeTensorMode() as mode:
        return found(*(mode.from_tensor(arg) if isinstance(arg, torch.Tensor) else arg for arg in args))


def _real_forms(found: Any, args: tuple[Any, ...]) -> Outputs:
    """Return shape and strides of each output as the kernel makes it."""
    return _forms(found(*args))


def _fake_dtypes(found: Any, args: tuple[Any, ...]) -> Outputs:
    """Return for each output on fake tensors an empty tensor of its dtype."""
    return tuple(torch.empty(0, dtype=output.dtype) for output in _several(_on_fake_tensors(found, args)))


def _forms(outputs: Any) -> Outputs:
    return tuple(torch.tensor([*map(int, output.shape), *map(int, output.stride())]) for output in _several(outputs))


def _several(outputs: Any) -> Sequence[Any]:
    return outputs if isinstance(outputs, tuple | list) else (outputs,)


def _symbolic_shapes(found: Any, args: tuple[Any, ...]) -> Outputs:
    """Return the shape of each output for sizes that the operator never saw.

    The first half of `args` is for one call on fake tensors whose sizes are symbols. The second half has tensors with
    the sizes that are then put in place of the symbols.
    """
    from torch._subclasses.fake_tensor import FakeTensorMode
    from torch.fx.experimental.symbolic_shapes import DimDynamic, ShapeEnv, StatelessSymbolicContext

    shown, asked = args[: len(args) // 2], args[len(args) // 2 :]
    given: list[Any] = []
    sizes: dict[Any, int] = {}
    with FakeTensorMode(shape_env=ShapeEnv()) as mode:
        for arg, other in zip(shown, asked, strict=True):
            if isinstance(arg, torch.Tensor):
                free: Any = StatelessSymbolicContext(dynamic_sizes=[DimDynamic.DYNAMIC] * arg.dim())
                arg = mode.from_tensor(arg, symbolic_context=free)
                symbols: Sequence[Any] = arg.shape
                sizes |= {size.node.expr: new for size, new in zip(symbols, other.shape, strict=True)}
            given.append(arg)
        outputs = found(*given)
    return tuple(torch.tensor([_with(sizes, size) for size in output.shape]) for output in _several(outputs))


def _with(sizes: Mapping[Any, int], size: Any) -> int:
    expression = size if isinstance(size, int) else size.node.expr.subs(sizes)
    try:
        return int(expression)
    except TypeError:
        raise NoSizeError(f"On fake tensors a size is {expression}, which no argument's size gives.") from None


def _declared_writes(found: Any, args: tuple[Any, ...]) -> Outputs:
    """Return for each argument of the schema whether it is declared as written."""
    (overload,) = (getattr(found, name) for name in found.overloads())
    declared = [argument.alias_info for argument in overload._schema.arguments]
    return (torch.tensor([int(bool(alias and alias.is_write)) for alias in declared]),)


def _left_tensors(found: Any, args: tuple[Any, ...]) -> Outputs:
    """Return what a call leaves in the tensors that it gets."""
    copies = [arg.clone() if isinstance(arg, torch.Tensor) else arg for arg in args]
    found(*copies)
    return tuple(copy for copy in copies if isinstance(copy, torch.Tensor))


def _recorded_nodes(found: Any, args: tuple[Any, ...]) -> Outputs:
    """Return how many nodes autograd records for a call: one if the operator has a derivative of its own."""
    first, *others = args
    recorded: set[Any] = set()
    reached = [_GRAD_FN(output) for output in _several(found(first.clone().requires_grad_(), *others))]
    while reached:
        node = reached.pop()
        if node is not None and node not in recorded:
            recorded.add(node)
            reached += [before for before, _ in node.next_functions]
    return (torch.tensor([sum(not hasattr(node, "variable") for node in recorded)]),)


_ABOUT: Mapping[str, Callable[[Any, tuple[Any, ...]], Outputs]] = {
    "before another call ": _before_another,
    "forms of ": _fake_forms,
    "dtypes of ": _fake_dtypes,
    "real forms of ": _real_forms,
    "symbolic shapes of ": _symbolic_shapes,
    "declared writes of ": _declared_writes,
    "recorded nodes of ": _recorded_nodes,
    "tensors after ": _left_tensors,
}
