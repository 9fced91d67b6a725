"""Modules that a schedule puts into a model: fused operators, checkpoints, linear layers in two operators, functions.

Fused operators are a small graph to compile, or a kernel. They hold no parameters: the parameters stay in the model and
are passed with each call. They hold the dropout modules whose training flag they read, so that `train()` and `eval()`
still set these flags.
"""

import copy
import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from torch import fx, nn
from torch.utils.checkpoint import checkpoint

from course_lib.errors import ScheduleError
from course_lib.module_hooks import has_own_hooks
from course_lib.silence import kept_warnings


def _script(body: fx.GraphModule) -> Callable[..., Any]:
    with kept_warnings():  # it warns of its own deprecation, and of how torch.fx writes modules
        return torch.jit.script(body)


COMPILERS: Mapping[str, Callable[[fx.GraphModule], Callable[..., Any]]] = {
    "eager": lambda body: body,
    "inductor": lambda body: torch.compile(body, backend="inductor"),
    "torchscript": _script,
}


@dataclass(frozen=True)
class Slot:
    """The place of an operand in a call."""

    number: int


@dataclass(frozen=True)
class Flag:
    """The training flag of a module, read when the call is made."""

    module: str  # name in the fused module


class FusedGraph(nn.Module):
    """A few operators as a separate graph, which a compiler compiles and runs."""

    def __init__(self, body: fx.GraphModule, compiler: str, switches: Mapping[str, nn.Module]) -> None:
        """Take a graph whose last inputs are the training flags of `switches`, in this order."""
        super().__init__()
        self.body, self.compiler, self.switches = body, compiler, nn.ModuleDict(switches)
        self._compiled: list[Callable[..., Any]] = []  # in a list, so that nn.Module does not register it
        if compiler == "torchscript":  # so that it raises errors now, not at the first call
            self._compile()

    def forward(self, *operands: torch.Tensor) -> Any:
        """Return what the operators return."""
        flags = (module.training for module in self.switches.values())
        run = self._compiled[0] if self._compiled else self._compile()
        return run(*operands, *flags)

    def _compile(self) -> Callable[..., Any]:
        self._compiled = [COMPILERS[self.compiler](self.body)]
        return self._compiled[0]

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_compiled": []}  # a loaded module compiles again

    def __deepcopy__(self, memo: dict[int, Any]) -> "FusedGraph":
        copied = FusedGraph.__new__(FusedGraph)
        memo[id(self)] = copied
        copied.__setstate__(copy.deepcopy(self.__getstate__(), memo))
        if self.compiler == "torchscript" and _is_stateless(self.body):
            copied._compiled = list(self._compiled)  # a function of its operands alone: any copy may call it
        return copied

    def extra_repr(self) -> str:
        """Return what `print` shows of the module."""
        return f"compiler={self.compiler}"


class FusedKernel(nn.Module):
    """A function that computes what a pattern computes, called with the operands of the pattern."""

    def __init__(
        self, kernel: Callable[..., Any], arguments: Sequence[object], switches: Mapping[str, nn.Module]
    ) -> None:
        """Take the arguments of each call: literals, `Slot` for an operand, `Flag` for a training flag."""
        super().__init__()
        self.kernel, self.arguments, self.switches = kernel, tuple(arguments), nn.ModuleDict(switches)

    def forward(self, *operands: torch.Tensor) -> Any:
        """Return what the kernel returns."""
        return self.kernel(*(self._value(argument, operands) for argument in self.arguments))

    def _value(self, argument: object, operands: Sequence[torch.Tensor]) -> object:
        if isinstance(argument, Slot):
            return operands[argument.number]
        return self.switches[argument.module].training if isinstance(argument, Flag) else argument

    def __deepcopy__(self, memo: dict[int, Any]) -> "FusedKernel":
        # The kernel itself is shared: an operator of torch.library refuses to be copied.
        switches = {name: copy.deepcopy(module, memo) for name, module in self.switches.items()}
        return FusedKernel(self.kernel, self.arguments, switches)

    def extra_repr(self) -> str:
        """Return what `print` shows of the module."""
        return f"kernel={name_of(self.kernel)}"


def _is_stateless(body: nn.Module) -> bool:
    """Return whether a module has no sub-modules, parameters or buffers, so that copies can share it."""
    return not any(True for _ in (*body.children(), *body.parameters(), *body.buffers()))


def name_of(kernel: object) -> str:
    """Return the name of a function, operator or module for a message."""
    name = getattr(kernel, "__name__", None) or getattr(kernel, "_name", None) or type(kernel).__name__
    return str(name)


def check_arity(kernel: Callable[..., Any], parameters: Sequence[str]) -> None:
    """Raise `ScheduleError` if a function cannot take the pattern's operands one by one."""
    try:
        signature = inspect.signature(kernel)
    except (TypeError, ValueError):  # a builtin without a signature cannot be checked before its first call
        return
    try:
        signature.bind(*parameters)
    except TypeError as error:
        raise ScheduleError(
            f"{name_of(kernel)} takes {signature}, but the pattern has the operands ({', '.join(parameters)}), "
            f"given in this order; write a pattern or a kernel with the same parameters ({error})."
        ) from error


class Checkpointed(nn.Module):
    """Run a module, save only its inputs, and compute the rest again in the backward pass.

    Names in the state dict stay as they were: the tables of parameters, buffers and sub-modules are shared with the
    module. Dropout drops the same elements when it is computed again.
    """

    def __init__(self, module: nn.Module) -> None:
        super().__init__()
        self._inner = (module,)  # in a tuple, because a registered module would add its name to the state dict
        self._parameters, self._buffers, self._modules = module._parameters, module._buffers, module._modules
        self._non_persistent_buffers_set = module._non_persistent_buffers_set
        self.training = module.training
        self.enabled = True  # `verify` switches it off where dropout masks are replayed, which are recorded once

    @property
    def inner(self) -> nn.Module:
        """Return the module that is run."""
        return self._inner[0]

    def __getattr__(self, name: str) -> Any:
        """Return what the parent reads of the module, as `nn.TransformerEncoderLayer` reads `batch_first`."""
        try:
            return super().__getattr__(name)
        except AttributeError:
            if name == "_inner" or name.startswith("__"):  # how to copy and to save is decided here
                raise
        return getattr(self.inner, name)

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """Return what the module returns."""
        if not (self.enabled and torch.is_grad_enabled()):
            return self.inner(*args, **kwargs)
        return checkpoint(self.inner, *args, use_reentrant=False, **kwargs)

    def train(self, mode: bool = True) -> "Checkpointed":
        """Set the mode of this module and of the one it runs."""
        super().train(mode)
        self.inner.training = mode
        return self

    def __reduce__(self) -> tuple[type[nn.Module], tuple[nn.Module]]:
        # A copy wraps a copy of the module, so that both share their tables again.
        return type(self), (self.inner,)


class SeparateBiasLinear(nn.Linear):
    """Multiply first and add the bias in a separate operator, which can be fused with later operators.

    torch.fx traces into this module, but keeps `torch.nn.Linear` as one node.
    """

    def forward(self, input: torch.Tensor) -> torch.Tensor:  # noqa: A002  # as in torch.nn.Linear
        """Return `input @ weightᵀ + bias`: (..., in_features) in, (..., out_features) out."""
        return F.linear(input, self.weight) + self.bias


def separate_bias(path: str, linear: nn.Module) -> SeparateBiasLinear:
    """Return a layer that computes the same with the same Parameter objects; raise `ScheduleError` if not possible."""
    if type(linear) is not nn.Linear:
        raise ScheduleError(
            f"decompose got {path or 'the model'}, a {type(linear).__name__}; it expects a torch.nn.Linear, "
            "so give the path of one."
        )
    if not isinstance(linear.bias, nn.Parameter):
        raise ScheduleError(f"decompose got {path}, which has no bias, so leave it as it is.")
    if has_own_hooks(linear):
        raise ScheduleError(f"decompose got {path}, which has hooks that would no longer run; remove the hooks first.")
    separated = SeparateBiasLinear(
        linear.in_features, linear.out_features, device="meta"
    )  # its own weights cost nothing
    separated.weight, separated.bias = linear.weight, linear.bias
    return separated.train(linear.training)


class FunctionModule(nn.Module):
    """A module that calls a function and replaces a module without parameters."""

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__()
        self.function = function

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """Return what the function returns."""
        return self.function(*args, **kwargs)

    def __deepcopy__(self, memo: dict[int, Any]) -> "FunctionModule":
        return FunctionModule(self.function).train(self.training)  # an operator of torch.library refuses to be copied

    def extra_repr(self) -> str:
        """Return what `print` shows of the module."""
        return name_of(self.function)
