"""Floating-point operations of one operator, by the formulas of `torch.utils.flop_counter`.

Matrix products, convolutions and attention count, a multiplication and an addition as one each; everything else
counts as none, as is usual: it costs memory traffic, not arithmetic.
"""

import functools
from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch.utils import flop_counter


def flops_of(operator: Any, args: tuple[object, ...], kwargs: Mapping[str, object], result: object) -> int:
    """Return the floating-point operations of one call of an operator, 0 where there is no formula."""
    formula = _formulas().get(operator._overloadpacket)
    return int(formula(*args, **kwargs, out_val=result)) if formula else 0


@functools.cache
def _formulas() -> Mapping[object, Callable[..., int]]:
    # torch 2.13 has no formula for attention on the CPU; it is the same arithmetic as elsewhere.
    aten = torch.ops.aten
    return {
        **flop_counter.flop_registry,
        aten._scaled_dot_product_flash_attention_for_cpu: _attention,
        aten._scaled_dot_product_flash_attention_for_cpu_backward: _attention_backward,
    }


def _attention(query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, *_: object, **__: object) -> int:
    return int(flop_counter.sdpa_flop_count(query.shape, key.shape, value.shape))


def _attention_backward(
    grad: torch.Tensor, query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, *_: object, **__: object
) -> int:
    shapes = grad.shape, query.shape, key.shape, value.shape
    return int(flop_counter.sdpa_backward_flop_count(*shapes))
