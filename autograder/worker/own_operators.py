"""Operators of an answer's own, made of the texts of Triton kernels and launchers that the host wrote.

No other Python of a student runs here. The operators are those of `course_lib`'s `kernel_operator`, whose kernels run
in Triton's interpreter; launchers see the form of tensors and no values.
"""

import functools
import inspect
import itertools
from collections.abc import Callable, Mapping
from typing import Any

import torch

from autograder.protocol.requests.answers import OwnOperator
from autograder.protocol.requests.loads import Part
from autograder.worker.kernel_calls import LauncherCall, Operand
from autograder.worker.kernel_texts import Names, interpreted_names

OWN = "own."  # as `course_lib.graph` has it
_NUMBERS = itertools.count()


@functools.cache
def own_operators(operators: tuple[OwnOperator, ...], kernels: tuple[Part, ...]) -> Mapping[str, Callable[..., Any]]:
    """Return the operators by the names by which a graph calls them."""
    if not operators:
        return {}
    from course_lib.kernel_programs.kernel_operator import kernel_operator

    plain, exact = interpreted_names(kernels), interpreted_names(kernels, exact=True)
    return {
        f"{OWN}{each.name}": kernel_operator(
            f"own::operator_{next(_NUMBERS)}",  # the answer's name could be that of another operator
            _launcher(each.forward, plain, exact),
            _launcher(each.backward, plain, exact),
            results=each.results,
            keeps=each.keeps,
            gradients=each.gradients,
        )
        for each in operators
    }


def _launcher(name: str, plain: Names, exact: Names) -> Callable[..., Any]:
    """Return a launcher of the texts as a function of tensors; those in double precision run the exact text."""

    def launched(*args: Any) -> Any:
        call = LauncherCall()
        given = [
            Operand(f"argument {i}", a, call.make) if isinstance(a, torch.Tensor) else a for i, a in enumerate(args)
        ]
        in_fp64 = any(isinstance(arg, torch.Tensor) and arg.dtype is torch.float64 for arg in args)
        returned = (exact if in_fp64 else plain)[name](*given)
        return tuple(output._memory for output in call.outputs(returned))

    launched.__name__ = name
    launched.__signature__ = inspect.signature(plain[name])  # type: ignore[attr-defined]  # what kernel_operator reads
    return launched
