"""Operators whose text the host has checked, registered in a worker that runs no other Python of the student.

Each is reached by its name, as the dispatcher does. A word before the name asks about the operator in place of calling
it; the answer is tensors, which the host compares.
"""

import builtins
import gc
import linecache
import math
import typing
from collections.abc import Callable, Mapping, Sequence
from sys import getsizeof
from typing import Any

import torch
from torch.nn import functional as F
from torch.utils._pytree import tree_leaves

from autograder.protocol import Handlers, Result, Tensors
from autograder.protocol.requests.answers import Called, CallFunction
from autograder.protocol.requests.loads import LoadOperators
from autograder.worker.kernel_texts import Names
from autograder.worker.source import AnswerError
from autograder.worker.tensors import call_on_tensors

OPERATOR, ON_TRITON = "torch.ops.", "on Triton "
BUILTINS = """abs all any bool divmod enumerate float int isinstance len list max min range reversed slice str sum tuple
    zip NotImplementedError RuntimeError TypeError ValueError __import__"""
"""PyTorch itself imports where it is called; no text of operators can name that function."""
Outputs = tuple[torch.Tensor, ...]


class NoOperatorError(AnswerError):
    """The answer registered no operator of that name."""


class NoTritonError(AnswerError):
    """An operator launches a kernel without asking whether Triton runs."""


class NoSizeError(AnswerError):
    """A size on fake tensors depends on something else than the sizes of the operator's arguments."""


def load_operators(request: LoadOperators, _: Tensors) -> Handlers:
    """Run a text that registers operators; each request calls one of them, or asks about one."""
    name, text = request.part.name, request.part.text
    stand_in = _StandIn()
    filename = f"<{name}>"
    linecache.cache[filename] = (len(text), None, text.splitlines(keepends=True), filename)
    exec(compile(text, filename, "exec", dont_inherit=True), _given(text, stand_in))

    def call(request: CallFunction, tensors: Tensors) -> Result[Called]:
        stand_in.asked = request.function.startswith(ON_TRITON)
        return call_on_tensors(operator(request.function.removeprefix(ON_TRITON)), request.call, tensors)

    return {CallFunction: call}


class _StandIn:
    """Functions in the place of Triton's kernels; their numbers show which argument came where."""

    asked = False  # whether Triton seems to run: in requests that say so

    def add_norm(
        self, x: Any, bias: Any, residual: Any, weight: Any, shift: Any, p: Any, seed: Any, eps: Any
    ) -> Outputs:
        h = residual + p * (x + bias)
        return self.launched(h, weight * h + shift * (seed + eps))

    def add_norm_backward(self, grad_h: Any, grad_y: Any, h: Any, weight: Any, p: Any, seed: Any, eps: Any) -> Outputs:
        return self.launched(p * grad_h + weight * h, seed * grad_y + eps * grad_h)

    def launched(self, *outputs: torch.Tensor) -> Outputs:
        if not self.asked:
            raise NoTritonError("A kernel was launched where Triton does not run. Ask triton_runs_on(x) first.")
        return outputs


def _given(text: str, stand_in: _StandIn) -> Names:
    """Return the names that a text may use, see `GIVEN` in `autograder.host.artifacts.operator_source`."""
    from torch.library import custom_op

    names: Names = {"torch": torch, "F": F, "math": math, "Tensor": torch.Tensor, "custom_op": custom_op}
    kernels = {"add_norm": stand_in.add_norm, "add_norm_backward": stand_in.add_norm_backward}
    names |= {each: getattr(typing, each) for each in ("Any", "List", "Optional", "Sequence", "Tuple", "Union")}
    names |= {**kernels, "launcher": lambda name: kernels[name], "nn": torch.nn}
    names["__builtins__"] = {each: getattr(builtins, each) for each in BUILTINS.split()}
    if "uniform_numbers" in text:
        from course_lib.kernels.dropout import uniform_numbers

        names["uniform_numbers"] = uniform_numbers
    if "triton_runs_on" in text:
        from course_lib.kernel_programs.interpreter import triton_runs_on

        names["triton_runs_on"] = lambda x: stand_in.asked or triton_runs_on(x)
    return names


def operator(name: str) -> Callable[..., Any]:
    """Return the operator, or a function that answers what the words before its name ask for."""
    about, _, qualified = name.partition(OPERATOR)
    namespace, _, own = qualified.partition(".")
    found = getattr(getattr(torch.ops, namespace), own, None)
    if found is None:
        raise NoOperatorError(
            f'The answer registers no operator "{namespace}::{own}". Put '
            f'`@torch.library.custom_op("{namespace}::{own}", mutates_args=...)` above its function, with the names of '
            "the arguments that it writes to, () if there are none."
        )
    return (lambda *args: _ABOUT[about](found, args)) if about else found


def _before_another(found: Any, args: tuple[Any, ...]) -> Outputs:
    """Return the outputs of a call, after which another one on other numbers was made."""
    outputs: Outputs = found(*args)
    found(*(arg.detach().flip(0).requires_grad_() if isinstance(arg, torch.Tensor) else arg for arg in args))
    return outputs


def _on_fake_tensors(found: Any, args: tuple[Any, ...]) -> Any:
    from torch._subclasses.fake_tensor import FakeTensorMode

    with FakeTensorMode() as mode:
        return found(*(mode.from_tensor(arg) if isinstance(arg, torch.Tensor) else arg for arg in args))


def _fake_dtypes(found: Any, args: tuple[Any, ...]) -> Outputs:
    """Return for each output on fake tensors an empty tensor of its dtype."""
    return tuple(torch.empty(0, dtype=output.dtype) for output in _several(_on_fake_tensors(found, args)))


def _forms(outputs: Any) -> Outputs:
    """Return shape and strides of each output."""
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
    reached = [output.grad_fn for output in _several(found(first.clone().requires_grad_(), *others))]
    while reached:
        node = reached.pop()
        if node is not None and node not in recorded:
            recorded.add(node)
            reached += [before for before, _ in node.next_functions]
    return (torch.tensor([sum(not hasattr(node, "variable") for node in recorded)]),)


def _kept_memory(found: Any, args: tuple[Any, ...]) -> Outputs:
    """Return the bytes of each argument that a call keeps alive, and those of all else but what outputs hold."""
    before = _memory_of(gc.get_objects())
    given = [arg.requires_grad_().clone() if isinstance(arg, torch.Tensor) else arg for arg in args]  # held by no leaf
    own = [_place(each) for each in given if isinstance(each, torch.Tensor)]
    outputs = _several(found(*given))
    given.clear()
    gc.collect()
    kept = tree_leaves([getattr(outputs[0].grad_fn, name, ()) for name in ("saved_tensors", "__dict__")])
    memory = {place: size for place, size in _memory_of(gc.get_objects()).items() if place not in before}
    memory |= _memory_of(kept)
    others = sum(memory[place] for place in memory.keys() - {*own, *map(_place, outputs)})
    spare = sum(each.untyped_storage().nbytes() - each.nbytes for each in outputs) + sum(map(getsizeof, kept))
    return (torch.tensor([*(memory.get(place, 0) for place in own), others + spare]),)


def _memory_of(values: Sequence[Any]) -> dict[int, int]:
    return {_place(each): each.untyped_storage().nbytes() for each in values if type(each) is torch.Tensor}


def _place(tensor: torch.Tensor) -> int:
    return tensor.untyped_storage().data_ptr()


_ABOUT: Mapping[str, Callable[[Any, tuple[Any, ...]], Outputs]] = {
    "before another call ": _before_another,
    "forms of ": lambda found, args: _forms(_on_fake_tensors(found, args)),
    "dtypes of ": _fake_dtypes,
    "real forms of ": lambda found, args: _forms(found(*args)),
    "symbolic shapes of ": _symbolic_shapes,
    "declared writes of ": _declared_writes,
    "kept memory of ": _kept_memory,
    "recorded nodes of ": _recorded_nodes,
    "tensors after ": _left_tensors,
}
