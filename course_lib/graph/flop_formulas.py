"""Count the floating-point operations of one operator, by the formulas of `torch.utils.flop_counter`.

Matrix products, convolutions and attention count; a multiplication and an addition are one operation each. Other
operators count as 0, as is usual, since they are limited by memory traffic and not by arithmetic.
"""

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch.utils import flop_counter

Shape = Sequence[int]


def flops_of(operator: Any, args: tuple[object, ...], kwargs: Mapping[str, object], result: object) -> int:
    """Return the floating-point operations of one call of an operator, 0 where there is no formula."""
    formula = _formulas().get(operator._overloadpacket)
    return int(formula(*args, **kwargs, out_val=result)) if formula else 0


@functools.cache
def _formulas() -> Mapping[object, Callable[..., int]]:
    by_shape = {operator: flop_counter.shape_wrapper(formula) for operator, formula in attention_on_cpu().items()}
    return {**flop_counter.flop_registry, **by_shape}


def attention_on_cpu() -> Mapping[object, Callable[..., int]]:
    """Return formulas that take shapes, for the operators of attention on the CPU that torch 2.13 does not count."""
    aten = torch.ops.aten
    return {
        aten._scaled_dot_product_flash_attention_for_cpu: _attention,
        aten._scaled_dot_product_flash_attention_for_cpu_backward: _attention_backward,
    }


def _attention(query: Shape, key: Shape, value: Shape, *_: object, **__: object) -> int:
    return int(flop_counter.sdpa_flop_count(query, key, value))


def _attention_backward(grad: Shape, query: Shape, key: Shape, value: Shape, *_: object, **__: object) -> int:
    return int(flop_counter.sdpa_backward_flop_count(grad, query, key, value))
