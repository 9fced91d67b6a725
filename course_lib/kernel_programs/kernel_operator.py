"""Make one operator of PyTorch from two launchers of Triton kernels: one for its results, one for its gradients.

    @triton.jit
    def twice_kernel(x_ptr, y_ptr, n, BLOCK: tl.constexpr): ...

    def twice(x): ...              # makes y, launches the kernel, returns y
    def twice_backward(grad_y): ...

    operator = kernel_operator("mine::twice", twice, twice_backward)

The operator is one of PyTorch's: `torch.ops.mine.twice.default`. Its schema follows from the parameters of the forward
launcher: those annotated with `float`, `int` or `bool` are numbers, and all others are tensors. The parameters of the
backward launcher say by their names what it gets, and so what is saved. A fake implementation follows from the
launchers too, since they look at the form of tensors only.

On the CPU the kernels run in Triton's interpreter under an `AccessLog`, and `course_lib.graph.cost` charges each of
their launches. On CUDA Triton compiles them; this has not yet been run.
"""

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from course_lib.errors import KernelError
from course_lib.kernel_programs.interpreter import without_launches
from course_lib.kernel_programs.launch_traffic import note_traffic
from course_lib.kernel_programs.trial import run_logged
from course_lib.kernels.replayed_draws import draw_seed_of_positions

Launcher = Callable[..., Any]
NUMBERS: Mapping[Any, str] = {float: "float", int: "int", bool: "bool"}
SEED = "seed"


@dataclass(frozen=True)
class Declaration:
    """What an operator is made of, in names: what another process needs besides the text of the launchers."""

    name: str
    forward: str
    """The name of the launcher for the results."""
    backward: str
    """The name of the launcher for the gradients."""
    results: tuple[str, ...]
    keeps: tuple[str, ...]
    gradients: tuple[str, ...]


def kernel_operator(
    name: str,
    forward: Launcher,
    backward: Launcher,
    *,
    results: Sequence[str] = ("y",),
    keeps: Sequence[str] = (),
    gradients: Sequence[str] | None = None,
) -> Any:
    """Register an operator and return it; `name` is "namespace::name", and a second call replaces the first one.

        block_end = kernel_operator("step::block_end", forward, backward)
        y = block_end(x, bias, 0.1)

    `forward` returns the tensors that `results` names, then those that `keeps` names, which only backward sees. It has
    a parameter `seed` if it drops: callers leave it out, and each call gets a fresh int64 tensor of one element.

    `backward` returns a gradient for each name in `gradients`, by default for each tensor of `forward`. Its
    parameters are `grad_NAME` for a result, and names of parameters, results and kept tensors of `forward`.
    Launchers get contiguous tensors. Raises `KernelError` for names that do not fit.
    """
    _check_name(name)
    operator = _Operator(name, forward, backward, tuple(results), tuple(keeps), gradients)
    operator.register()
    packet = getattr(getattr(torch.ops, operator.namespace), operator.own_name)
    _OPERATORS[name] = operator
    return packet.default


def declared_operators() -> Mapping[Any, Declaration]:
    """Return what each operator that `kernel_operator` made is made of; a packet has the same entry as its overload."""
    found: dict[Any, Declaration] = {}
    for operator in _OPERATORS.values():
        packet = getattr(getattr(torch.ops, operator.namespace), operator.own_name)
        found |= dict.fromkeys((packet, packet.default), operator.declaration)
    return found


_OPERATORS: "dict[str, _Operator]" = {}


def _check_name(name: str) -> None:
    namespace, _, own_name = name.partition("::")
    if not (namespace.isidentifier() and own_name.isidentifier() and name.isascii()):
        raise KernelError(f'the name of an operator is {name!r:.80}; expected one such as "step::block_end".')
    if name not in _OPERATORS and hasattr(getattr(torch.ops, namespace), own_name):
        raise KernelError(
            f"there is an operator {name!r} already; choose another name, such as one with your namespace."
        )


class _Operator:
    """The launchers of one operator, and the rules that PyTorch needs of it."""

    def __init__(
        self,
        name: str,
        forward: Launcher,
        backward: Launcher,
        results: tuple[str, ...],
        keeps: tuple[str, ...],
        gradients: Sequence[str] | None,
    ) -> None:
        self.namespace, _, self.own_name = name.partition("::")
        self.name, self.forward, self.backward = name, forward, backward
        self.results, self.keeps = results, keeps
        self.types = _types_of(forward)
        self.tensors = tuple(each for each, kind in self.types.items() if kind == "Tensor" and each != SEED)
        self.gradients = self.tensors if gradients is None else tuple(gradients)
        self.wanted = tuple(_types_of(backward))
        self._check()
        self.declaration = Declaration(name, forward.__name__, backward.__name__, results, keeps, tuple(self.gradients))

    def _check(self) -> None:
        made = (*self.results, *self.keeps)
        if not self.results or not all(type(each) is str and each.isidentifier() for each in made):
            raise KernelError(f"{self.name} has the results {made!r:.80}; expected at least one, by names of Python.")
        if len({*made, *self.types}) < len(made) + len(self.types):
            raise KernelError(f"{self.name}: parameters, results and kept tensors need names that differ; got {made}.")
        if not self.gradients:
            raise KernelError(f"{self.name} needs at least one gradient, by a tensor of `{self.forward.__name__}`.")
        for each in self.gradients:
            if each not in self.tensors:
                raise KernelError(
                    f"{self.name} is to have a gradient by `{each}`; the tensors of `{self.forward.__name__}` are "
                    f"{', '.join(self.tensors) or 'none'}."
                )
        offered = self._offered()
        for each in self.wanted:
            if each not in offered:
                raise KernelError(
                    f"`{self.backward.__name__}` has a parameter `{each}`; expected names among {', '.join(offered)}."
                )

    def _offered(self) -> Mapping[str, str]:
        """Return what a backward launcher can ask for, with its type in a schema."""
        return {
            **{f"grad_{each}": "Tensor" for each in self.results},
            **self.types,
            **dict.fromkeys((*self.results, *self.keeps), "Tensor"),
        }

    def register(self) -> None:
        """Register three operators: the one to call, and the two that launch."""
        own = {each: kind for each, kind in self.types.items() if each != SEED}
        made = (*self.results, *self.keeps)
        launch = f"{self.name}_launch"
        first = torch.library.custom_op(
            launch, self._launched(self.forward, made), mutates_args=(), schema=_schema(self.types, len(made))
        )
        offered = self._offered()
        of_backward = {each: offered[each] for each in self.wanted}
        second = torch.library.custom_op(
            f"{self.name}_backward",
            self._launched(self.backward, tuple(f"the gradient by {each}" for each in self.gradients)),
            mutates_args=(),
            schema=_schema(of_backward, len(self.gradients)),
        )
        for each, launcher, count in ((first, self.forward, len(made)), (second, self.backward, len(self.gradients))):
            each.register_fake(_fake(launcher, count))
        first.register_autograd(self._derivative(second), setup_context=self._save)
        _define(self.name, _schema(own, len(self.results)), self._called(first))

    def _called(self, launch: Any) -> Callable[..., Any]:
        def called(*given: Any) -> Any:
            values = iter(value.contiguous() if isinstance(value, torch.Tensor) else value for value in given)
            like = next(value for value in given if isinstance(value, torch.Tensor))
            args = [draw_seed_of_positions(like) if each == SEED else next(values) for each in self.types]
            found = _several(launch(*args))[: len(self.results)]
            return found if len(found) > 1 else found[0]

        return called

    def _launched(self, launcher: Launcher, made: Sequence[str]) -> Callable[..., Any]:
        def launched(*args: Any) -> Any:
            if any(isinstance(arg, torch.Tensor) and arg.is_cuda for arg in args):
                found = launcher(*args)
            else:
                found, log = run_logged(launcher, args)
                note_traffic(log, launcher.__name__)
            outputs = _several(found)
            self._check_made(launcher.__name__, outputs, args, made)
            return outputs if len(made) > 1 else outputs[0]

        return launched

    def _check_made(self, launcher: str, outputs: Sequence[Any], args: Sequence[Any], made: Sequence[str]) -> None:
        if len(outputs) != len(made) or not all(isinstance(each, torch.Tensor) for each in outputs):
            raise KernelError(
                f"`{launcher}` returned {_said(outputs)}; expected {len(made)} tensors: {', '.join(made)}."
            )
        taken = {_place(each) for each in args if _has_memory(each)}
        for each in filter(_has_memory, outputs):
            if _place(each) in taken:
                raise KernelError(
                    f"`{launcher}` returned a tensor that it was given, or one tensor twice; make each with "
                    "`torch.empty`."
                )
            taken.add(_place(each))

    def _save(self, ctx: Any, inputs: Sequence[Any], output: Any) -> None:
        known = dict(zip(self.types, inputs, strict=True))
        known |= zip((*self.results, *self.keeps), _several(output), strict=True)
        needed = {each: known[each] for each in self.wanted if each in known}
        ctx.numbers = {each: value for each, value in needed.items() if not isinstance(value, torch.Tensor)}
        ctx.saved = [each for each in needed if each not in ctx.numbers]
        ctx.save_for_backward(*(needed[each] for each in ctx.saved))
        ctx.shapes = {each: known[each].shape for each in self.gradients}
        ctx.forms = [(each.shape, each.dtype, each.device) for each in _several(output)]
        ctx.set_materialize_grads(False)

    def _derivative(self, backward: Any) -> Callable[..., tuple[torch.Tensor | None, ...]]:
        def derivative(ctx: Any, *grads: torch.Tensor | None) -> tuple[torch.Tensor | None, ...]:
            known = dict(zip(ctx.saved, ctx.saved_tensors, strict=True)) | ctx.numbers
            for each, grad, form in zip(self.results, grads, ctx.forms, strict=False):
                if f"grad_{each}" in self.wanted:
                    known[f"grad_{each}"] = _zeros(form) if grad is None else grad.contiguous()
            found = dict(zip(self.gradients, _several(backward(*(known[each] for each in self.wanted))), strict=True))
            for each, gradient in found.items():
                if gradient.shape != ctx.shapes[each]:
                    raise KernelError(
                        f"`{self.backward.__name__}` returned a gradient by {each} of shape {tuple(gradient.shape)}; "
                        f"expected that of {each}, {tuple(ctx.shapes[each])}."
                    )
            return tuple(found.get(each) for each in self.types)

        return derivative


def _types_of(launcher: Launcher) -> dict[str, str]:
    """Return the type of each parameter of a launcher, as schemas name it."""
    found = {}
    for name, parameter in inspect.signature(launcher).parameters.items():
        if parameter.kind is not parameter.POSITIONAL_OR_KEYWORD:
            raise KernelError(f"`{launcher.__name__}` has `{parameter}`; a launcher has plain parameters only.")
        found[name] = NUMBERS.get(parameter.annotation, "Tensor")
    if "Tensor" not in found.values():
        raise KernelError(f"`{launcher.__name__}` has no parameter for a tensor; expected at least one.")
    return found


def _schema(types: Mapping[str, str], outputs: int) -> str:
    returned = "Tensor" if outputs == 1 else f"({', '.join(['Tensor'] * outputs)})"
    return f"({', '.join(f'{kind} {name}' for name, kind in types.items())}) -> {returned}"


_LIBRARIES: dict[str, torch.library.Library] = {}


def _define(name: str, schema: str, called: Callable[..., Any]) -> None:
    """Define an operator that calls others, in place of an earlier one of the same name."""
    namespace, _, own_name = name.partition("::")
    if name in _LIBRARIES:
        _LIBRARIES.pop(name)._destroy()  # as custom_op does
    library = _LIBRARIES[name] = torch.library.Library(namespace, "FRAGMENT")
    library.define(f"{own_name}{schema}")
    library.impl(own_name, called, "CompositeImplicitAutograd")


def _fake(launcher: Launcher, count: int) -> Callable[..., Any]:
    def fake(*args: Any) -> Any:
        with without_launches():
            found = _several(launcher(*args))
        return found if count > 1 else found[0]

    return fake


def _several(found: Any) -> Any:
    return tuple(found) if isinstance(found, tuple | list) else (found,)


def _said(outputs: Sequence[Any]) -> str:
    kinds = sorted({type(each).__name__ for each in outputs})
    return f"{len(outputs)} values ({', '.join(kinds)})"


def _has_memory(value: Any) -> bool:
    return isinstance(value, torch.Tensor) and value.numel() > 0


def _zeros(form: tuple[torch.Size, torch.dtype, torch.device]) -> torch.Tensor:
    shape, dtype, device = form
    return torch.zeros(shape, dtype=dtype, device=device)


def _place(tensor: torch.Tensor) -> int:
    return tensor.untyped_storage().data_ptr()
