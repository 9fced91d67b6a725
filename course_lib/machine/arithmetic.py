"""What the units of the machine compute, each instruction as one PyTorch function on registers."""

import operator
from collections.abc import Callable, Mapping
from typing import Any

import torch

from course_lib.machine.instructions import Operand


def _larger(a: torch.Tensor, b: torch.Tensor | float) -> torch.Tensor:
    return torch.maximum(a, b) if isinstance(b, torch.Tensor) else a.clamp(min=b)


def _smaller(a: torch.Tensor, b: torch.Tensor | float) -> torch.Tensor:
    return torch.minimum(a, b) if isinstance(b, torch.Tensor) else a.clamp(max=b)


COLUMNWISE: Mapping[str, Callable[..., Any]] = {
    "copy": lambda a: a,
    "neg": torch.neg,
    "abs": torch.abs,
    "sign": torch.sign,
    "exp": torch.exp,
    "log": torch.log,
    "sqrt": torch.sqrt,
    "rsqrt": torch.rsqrt,
    "recip": torch.reciprocal,
    "tanh": torch.tanh,
    "sigmoid": torch.sigmoid,
    "erf": torch.erf,
    "sin": torch.sin,
    "cos": torch.cos,
    "not": torch.logical_not,
    "add": operator.add,
    "sub": operator.sub,
    "mul": operator.mul,
    "div": operator.truediv,
    "pow": operator.pow,
    "max": _larger,
    "min": _smaller,
    "lt": operator.lt,
    "le": operator.le,
    "gt": operator.gt,
    "ge": operator.ge,
    "eq": operator.eq,
    "ne": operator.ne,
    "and": torch.logical_and,
    "or": torch.logical_or,
    "select": torch.where,
}
ROWWISE: Mapping[str, Callable[..., torch.Tensor]] = {
    "sum.row": lambda value, dims: value.sum(dims, keepdim=True),
    "max.row": lambda value, dims: value.amax(dims, keepdim=True),
    "min.row": lambda value, dims: value.amin(dims, keepdim=True),
}


def compute(name: str, operands: list[torch.Tensor | Operand], dtype: torch.dtype | None) -> torch.Tensor:
    """Return what an arithmetic instruction gives, in the type that it has to have."""
    if name == "set":
        return torch.tensor(operands[0], dtype=dtype)
    value: torch.Tensor = COLUMNWISE[name](*operands)
    return value if dtype is None else value.to(dtype)
