"""Compile Triton kernels whose text the host wrote, for the GPU of this process, and time their launcher.

As in the interpreter, a launcher sees the form of tensors and no values, and no Python of a student runs here.
"""

from collections.abc import Mapping, Sequence
from types import ModuleType
from typing import Any

import torch

from autograder.protocol import Handlers, Tensors
from autograder.protocol.requests.kernel_runs import LoadTimedKernels
from autograder.protocol.requests.loads import Part
from autograder.worker.kernel_calls import LauncherError, Operand, grid_of, outputs_of, unwrapped
from autograder.worker.kernel_texts import BUILTINS, Names, innermost, run_part, torch_of_launchers
from autograder.worker.rounds import Rounds
from autograder.worker.tensors import filled

CHARACTERS = 300  # of the compiler's words, which the student sees


def load_timed_kernels(request: LoadTimedKernels, _: Tensors) -> Handlers:
    """Run the texts; requests call the launcher in timed rounds, each time on the tensors of one problem."""
    return Rounds(CompiledLauncher(request)).handlers()


class CompiledLauncher:
    """A launcher whose kernels Triton compiles at their first launch."""

    def __init__(self, request: LoadTimedKernels) -> None:
        self._arguments = request.arguments
        self._device = torch.device("cpu")
        self._launcher = launchers(request.parts, self._make)[request.launcher]

    def __call__(self, *tensors: torch.Tensor) -> tuple[torch.Tensor, ...]:
        """Return the tensors that the launcher returns."""
        self._device = tensors[0].device
        operands = [Operand(f"input {i}", tensor, self._make) for i, tensor in enumerate(tensors)]
        args, kwargs = filled(self._arguments, operands)  # type: ignore[arg-type]  # operands in place of tensors
        return tuple(output._memory for output in outputs_of(self._launcher(*args, **kwargs)))

    def _make(self, form: torch.Tensor, value: float | None = None) -> Operand:
        memory = torch.empty_strided(form.shape, form.stride(), dtype=form.dtype, device=self._device)
        return Operand("new tensor", memory if value is None else memory.fill_(value), self._make)


def launchers(parts: Sequence[Part], make: Any) -> Mapping[str, Any]:
    """Return the names of the texts, as launchers see them.

    A kernel sees a global `tl.constexpr` as it is, and a launcher sees its value, so the texts run once for each.
    """
    import triton
    import triton.language as tl

    def namespace(jit: Any) -> Names:
        offered = ModuleType("triton")  # the compiler takes names from modules only
        vars(offered).update(jit=jit, cdiv=triton.cdiv, next_power_of_2=triton.next_power_of_2)
        builtins = BUILTINS | {"min": min, "max": max}
        return {"__builtins__": builtins, "__name__": "answer", "tl": tl, "triton": offered, "torch": of_torch}

    of_torch = torch_of_launchers(make)
    kernels, found = namespace(_kernels()), namespace(lambda function: kernels[function.__name__])
    for names in (kernels, found):
        for part in parts:
            run_part(part, part.text, names)
    return found | {name: value.value for name, value in found.items() if isinstance(value, tl.constexpr)}


def _kernels() -> type:
    """Return the class of kernels that take a launcher's operands."""
    from triton.compiler import CompilationError
    from triton.runtime.jit import JITFunction

    class Kernel(JITFunction):
        def run(self, *args: Any, grid: Any, warmup: bool, **kwargs: Any) -> Any:
            programs = grid_of(grid, self, args, kwargs)
            named = {name: unwrapped(arg) for name, arg in kwargs.items()}
            try:
                return super().run(*map(unwrapped, args), grid=programs, warmup=warmup, **named)
            except CompilationError as error:
                cause = innermost(error, CompilationError)
                said = str(getattr(cause, "error_message", None) or cause).strip()
                raise LauncherError(f"Triton does not compile `{self.__name__}`: {said[:CHARACTERS]}") from None

    return Kernel
