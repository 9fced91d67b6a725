"""Formulas as people write them, by the operator that they are; and what only looks like one."""

import math
from collections.abc import Callable

import torch

from tests.course_lib.fusion.passes.rewrites import normal

Tensor = torch.Tensor
Program = Callable[..., object]
X, G, B = normal(5, 6), normal(6), normal(6, dtype=torch.float32) + 2
INPUTS = (X, G, B)
NORMAL = torch.distributions.Normal(0.0, 1.0, validate_args=False)
SLOPE = math.sqrt(2 / math.pi)


def cdf(x: Tensor) -> Tensor:
    return 0.5 * (1.0 + torch.erf(x / math.sqrt(2.0)))


def _distributed(x: Tensor) -> Tensor:
    return 0.5 * x + torch.erf(math.sqrt(0.5) * x) * x * 0.5


def _methods(x: Tensor) -> Tensor:
    return x.mul(0.5).mul(x.div(math.sqrt(2)).erf().add(1))


def _functions(x: Tensor) -> Tensor:
    inner = torch.erf(input=torch.multiply(x, math.sqrt(0.5)))
    return torch.mul(torch.true_divide(x, other=2), torch.add(inner, other=1, alpha=1))


GELU: dict[str, Program] = {
    "bert": lambda x, g, b: x * 0.5 * (1.0 + torch.erf(x / math.sqrt(2.0))),
    "distribution function": lambda x, g, b: x * cdf(x),
    "distribution function first": lambda x, g, b: cdf(x) * x,
    "torch's distribution": lambda x, g, b: x * NORMAL.cdf(x),
    "ndtr": lambda x, g, b: torch.special.ndtr(x) * x,
    "distributed": lambda x, g, b: _distributed(x),
    "methods": lambda x, g, b: _methods(x),
    "functions by name": lambda x, g, b: _functions(x),
    "halved at the end": lambda x, g, b: (x + x * torch.special.erf(x * 2**-0.5)) / 2,
    "root by hand": lambda x, g, b: 0.5 * (x * (torch.erf(x * (1 / math.sqrt(2))) + 1)),
    "negative twice": lambda x, g, b: -0.5 * x * (-1 - torch.erf(x / math.sqrt(2))),
    "of a sum": lambda x, g, b: _of_sum(x),
}


def _of_sum(x: Tensor) -> Tensor:
    y = x + 1
    return y * cdf(y)


# Their literals are given to fp32 only.
GELU_AT_FP32: dict[str, Program] = {
    "eight digits": lambda x, g, b: x * 0.5 * (1 + torch.erf(x * 0.70710678)),
    "seven digits": lambda x, g, b: x * 0.5 * (1 + torch.erf(x / 1.414214)),
    "a tensor as literal": lambda x, g, b: x * 0.5 * (1 + torch.erf(x / torch.sqrt(torch.tensor(2.0)))),
}
GELU_TANH: dict[str, Program] = {
    "gpt-2": lambda x, g, b: 0.5 * x * (1 + torch.tanh(SLOPE * (x + 0.044715 * torch.pow(x, 3)))),
    "new gelu": lambda x, g, b: 0.5 * x * (1.0 + torch.tanh(SLOPE * (x + 0.044715 * torch.pow(x, 3.0)))),
    "operator": lambda x, g, b: x / 2 * (torch.tanh((x**3 * 0.044715 + x) * SLOPE) + 1),
    "megatron with exact numbers": lambda x, g, b: x * 0.5 * (1 + torch.tanh(SLOPE * x * (1 + 0.044715 * x * x))),
    "square": lambda x, g, b: 0.5 * x * (1 + torch.tanh(SLOPE * x * torch.add(1, x.square(), alpha=0.044715))),
    "distributed": lambda x, g, b: x * 0.5 + 0.5 * x * (SLOPE * x + SLOPE * 0.044715 * x * x * x).tanh(),
    "addcmul": lambda x, g, b: 0.5 * x * (1 + torch.tanh(SLOPE * torch.addcmul(x, x * x, x, value=0.044715))),
}
GELU_TANH_AT_FP32: dict[str, Program] = {
    "megatron": lambda x, g, b: x * 0.5 * (1.0 + torch.tanh(0.79788456 * x * (1 + 0.044715 * x * x))),
    "ten digits": lambda x, g, b: 0.5 * x * (1.0 + torch.tanh(0.7978845608 * (x + 0.044715 * x * x * x))),
}
SILU: dict[str, Program] = {
    "product": lambda x, g, b: x * torch.sigmoid(x),
    "method": lambda x, g, b: x.sigmoid().mul(x),
    "expit": lambda x, g, b: torch.mul(torch.special.expit(x), other=x),
}


def _softmax(x: Tensor, shift: Tensor) -> Tensor:
    e = torch.exp(x - shift)
    return e / e.sum(-1, keepdim=True)


def softmax_by_methods(x: Tensor) -> Tensor:
    e = x.sub(x.amax(dim=-1, keepdim=True)).exp()
    return e.div(e.sum(dim=(-1,), keepdim=True))


def _softmax_times_reciprocal(x: Tensor) -> Tensor:
    e = torch.exp(-x.max(dim=1).values.unsqueeze(1) + x)
    return torch.reciprocal(torch.sum(e, 1).unsqueeze(-1)) * e


def _softmax_in_numpys_words(x: Tensor) -> Tensor:
    e = torch.exp(x - x.amax(axis=-1, keepdims=True))  # type: ignore[call-overload]  # PyTorch takes NumPy's names too
    return e / torch.sum(e, axis=-1, keepdims=True)  # type: ignore[call-overload,no-any-return]


def _softmax_over_first(x: Tensor) -> Tensor:
    e = torch.exp(x - torch.max(x, 0, True)[0])
    return e * (1 / torch.sum(e, dim=0, keepdim=True))


SOFTMAX: dict[str, Program] = {
    "maximum of a pair": lambda x, g, b: _softmax(x, x.max(-1, keepdim=True)[0]),
    "maximum by name": lambda x, g, b: _softmax(x, torch.max(x, dim=-1, keepdim=True).values),
    "detached": lambda x, g, b: _softmax(x, torch.amax(x, 1, True).detach()),
    "methods": lambda x, g, b: softmax_by_methods(x),
    "reciprocal": lambda x, g, b: _softmax_times_reciprocal(x),
    "numpy's words": lambda x, g, b: _softmax_in_numpys_words(x),
    "first dimension": lambda x, g, b: _softmax_over_first(x),
}


def normed(x: Tensor, variance: Tensor) -> Tensor:
    return (x - x.mean(-1, keepdim=True)) / torch.sqrt(variance + 1e-5)


def norm_by_squares(x: Tensor) -> Tensor:
    d = x - torch.mean(x, dim=-1, keepdim=True)
    return d * torch.rsqrt((d**2).mean(dim=-1, keepdim=True) + 1e-12)


def _var_mean(x: Tensor) -> Tensor:
    variance, mean = torch.var_mean(x, dim=-1, correction=0, keepdim=True)
    return (x - mean) * (variance + 1e-5).pow(-0.5)


def _sums(x: Tensor) -> Tensor:
    d = x - x.sum(-1, keepdim=True) / x.shape[-1]
    return d / (torch.sum(d * d, dim=-1).unsqueeze(-1) * (1 / 6) + 1e-5) ** 0.5


def _two_dimensions(x: Tensor) -> Tensor:
    d = x - x.mean((0, 1), keepdim=True)
    return d / torch.sqrt(torch.square(d).mean([-2, -1], keepdim=True) + 1e-3)


def variance_of(x: Tensor, **options: object) -> Tensor:
    return x.var(-1, keepdim=True, **options)  # type: ignore[call-overload,no-any-return]


LAYER_NORM: dict[str, Program] = {
    "no affine": lambda x, g, b: normed(x, variance_of(x, unbiased=False)),
    "by position": lambda x, g, b: normed(x, torch.var(x, -1, False, True)),
    "affine": lambda x, g, b: g * normed(x, variance_of(x, correction=0)) + b,
    "affine, other order": lambda x, g, b: b + normed(x, variance_of(x, unbiased=False)) * g,
    "weight inside": lambda x, g, b: (
        g * (x - x.mean(-1, keepdim=True)) / (x.var(-1, False, keepdim=True) + 1e-5).sqrt() + b
    ),
    "no eps": lambda x, g, b: (x - x.mean(-1, keepdim=True)) / torch.sqrt(variance_of(x, unbiased=False)),
    "deviation": lambda x, g, b: (x - x.mean(-1, keepdim=True)) / x.std(-1, unbiased=False, keepdim=True),
    "weight only": lambda x, g, b: norm_by_squares(x) * g,
    "bias only": lambda x, g, b: norm_by_squares(x) + b,
    "squares": lambda x, g, b: torch.add(b, torch.mul(g, norm_by_squares(x))),
    "addcmul": lambda x, g, b: torch.addcmul(b, norm_by_squares(x), g),
    "both at once": lambda x, g, b: g * _var_mean(x) + b,
    "sums": lambda x, g, b: _sums(x) * g + b,
    "two dimensions": lambda x, g, b: _two_dimensions(x),
}


def _llama(x: Tensor, g: Tensor) -> Tensor:
    kind = x.dtype
    x = x.type_as(g)
    variance = x.pow(2).mean(-1, keepdim=True)
    return g * (x * torch.rsqrt(variance + 1e-6)).to(kind)


def _t5(x: Tensor, g: Tensor) -> Tensor:
    variance = x.to(x.dtype).pow(2).mean(-1, keepdim=True)
    return g * (x * torch.rsqrt(variance + 1e-6))


def _gemma(x: Tensor, g: Tensor) -> Tensor:
    return (x * torch.rsqrt(torch.square(x).mean(-1, keepdim=True) + 1e-6) * (1.0 + g)).type_as(x)


RMS_NORM: dict[str, Program] = {
    "llama": lambda x, g, b: _llama(x, g),
    "t5": lambda x, g, b: _t5(x, g),
    "gemma": lambda x, g, b: _gemma(x, g),
    "no weight": lambda x, g, b: x * torch.rsqrt((x * x).mean(-1, True) + 1e-5),
    "quotient": lambda x, g, b: x / torch.sqrt(torch.mean(x**2, dim=-1, keepdim=True) + 1e-5) * g,
    "power": lambda x, g, b: g * x * (x.square().mean(-1, keepdim=True) + 1e-5).pow(-0.5),
    "sum": lambda x, g, b: g * (x * torch.rsqrt(x.pow(2).sum(-1, keepdim=True) / 6 + 1e-5)),
    "two dimensions": lambda x, g, b: x * torch.rsqrt(x.pow(2).mean((-2, -1), keepdim=True) + 1e-5),
    "no eps": lambda x, g, b: x / x.pow(2).mean(-1, keepdim=True).sqrt() * g,
}
OPERATORS = {
    "torch.nn.functional.gelu": {**GELU, **GELU_AT_FP32},
    "torch.nn.functional.gelu(approximate='tanh')": {**GELU_TANH, **GELU_TANH_AT_FP32},
    "torch.nn.functional.silu": SILU,
    "torch.softmax": SOFTMAX,
    "torch.nn.functional.layer_norm": LAYER_NORM,
    "torch.nn.functional.rms_norm": RMS_NORM,
}


def _gelu(x: Tensor, half: float = 0.5, root: float = math.sqrt(2), one: float = 1.0) -> Tensor:
    return x * half * (one + torch.erf(x / root))


def gelu_tanh(x: Tensor, slope: float = SLOPE, cube: float = 0.044715) -> Tensor:
    return 0.5 * x * (1 + torch.tanh(slope * (x + cube * torch.pow(x, 3))))


def _exponentials(x: Tensor) -> Tensor:
    e = torch.exp(x)
    return e / e.sum(-1, keepdim=True)


def _softmax_over_both(x: Tensor) -> Tensor:
    e = torch.exp(x - x.amax((0, 1), True))
    return e / e.sum((0, 1), True)


def _two_users(x: Tensor) -> Tensor:
    inner = x / math.sqrt(2)
    return x * 0.5 * (1 + torch.erf(inner)) + inner


def _returned(x: Tensor) -> tuple[Tensor, Tensor]:
    share = cdf(x)
    return x * share, share


def _in_place(x: Tensor) -> Tensor:
    half = x * 0.5
    return half.mul_(1 + torch.erf(x / math.sqrt(2)))


def _changed_between(x: Tensor) -> Tensor:
    share = cdf(x)
    x.add_(1)
    return x * share


# What looks like a formula and is none, with the rule that says so; none where it does not even look like one.
LOOKALIKES: dict[str, tuple[Program, tuple[str, ...]]] = {
    "0.51": (lambda x, g, b: _gelu(x, half=0.51), ("literal",)),
    "1.01": (lambda x, g, b: _gelu(x, one=1.01), ("literal",)),
    "three digits of the root": (lambda x, g, b: _gelu(x, root=1.41), ("literal",)),
    "five digits of the root": (lambda x, g, b: x * 0.5 * (1 + torch.erf(x * 0.70711)), ("literal",)),
    "0.0447": (lambda x, g, b: gelu_tanh(x, cube=0.0447), ("literal",)),
    "0.8": (lambda x, g, b: gelu_tanh(x, slope=0.8), ("literal",)),
    "double": (lambda x, g, b: x * (1 + torch.erf(x / math.sqrt(2))), ("literal",)),
    "quick gelu": (lambda x, g, b: x * torch.sigmoid(1.702 * x), ("literal",)),
    "difference": (lambda x, g, b: x * 0.5 * (1 - torch.erf(x / math.sqrt(2))), ("literal",)),
    "tail": (lambda x, g, b: x * 0.5 * torch.erfc(-x / math.sqrt(2)), ()),
    "power": (lambda x, g, b: 0.5 * x * (1 + torch.tanh(SLOPE * (x + 0.044715 * x**2))), ()),
    "another x": (lambda x, g, b: (x + 1) * 0.5 * (1 + torch.erf(x / math.sqrt(2))), ()),
    "rounded": (
        lambda x, g, b: torch.div(x, 2, rounding_mode="floor") * (1 + torch.erf(x / math.sqrt(2))),
        (),
    ),
    "alpha": (lambda x, g, b: torch.add(x, x * torch.erf(x * 0.5**0.5), alpha=2) * 0.5, ("literal",)),
    "unbiased": (lambda x, g, b: normed(x, variance_of(x)), ("variance",)),
    "correction": (lambda x, g, b: g * normed(x, variance_of(x, correction=1)) + b, ("variance",)),
    "unbiased deviation": (
        lambda x, g, b: g * (x - x.mean(-1, keepdim=True)) / (x.std(-1, keepdim=True) + 1e-6) + b,
        ("variance",),
    ),
    "eps outside the root": (
        lambda x, g, b: (x - x.mean(-1, keepdim=True)) / (x.std(-1, unbiased=False, keepdim=True) + 1e-6),
        ("variance",),
    ),
    "first dimension": (
        lambda x, g, b: (x - x.mean(0, True)) / torch.sqrt(x.var(0, False, True) + 1e-5),
        ("shape",),
    ),
    "other dimensions": (
        lambda x, g, b: (x - x.mean(-1, True)) / torch.sqrt(x.var(0, False, True) + 1e-5),
        (),
    ),
    "a mean with one more dimension": (
        lambda x, g, b: (x - x.mean(-1, True)[None]) / torch.sqrt(x.var(-1, False, True) + 1e-5),
        (),
    ),
    "eps below zero": (lambda x, g, b: (x - x.mean(-1, True)) * (x.var(-1, False, True) - 1e-5).rsqrt(), ("variance",)),
    "the mean of another value": (
        lambda x, g, b: (x - x.mean(-1, True)) / torch.sqrt((x * g).var(-1, False, True) + 1e-5),
        (),
    ),
    "a sum over another number": (
        lambda x, g, b: (x - x.sum(-1, True) / 5) / torch.sqrt(x.var(-1, False, True) + 1e-5),
        ("literal",),
    ),
    "a value over itself": (lambda x, g, b: x * x / x * cdf(x), ()),
    "nothing of another value": (lambda x, g, b: (x + 0.0 * g) * cdf(x), ()),  # but its NaN
    "mean of another value": (lambda x, g, b: x * torch.rsqrt((x * x * g).mean(-1, True) + 1e-5), ()),
    "mean of the absolute": (lambda x, g, b: x * torch.rsqrt(x.abs().mean(-1, True) + 1e-5), ()),
    "mean of the fourth power": (lambda x, g, b: x * torch.rsqrt(x.pow(4).mean(-1, True) + 1e-5), ()),
    "half of the mean of squares": (lambda x, g, b: x * torch.rsqrt(x.pow(2).mean(-1, True) / 2 + 1e-5), ("literal",)),
    "sum of squares": (lambda x, g, b: x * torch.rsqrt(x.pow(2).sum(-1, True) + 1e-5), ("literal",)),
    "mean of squares, eps outside the root": (lambda x, g, b: x / (x.pow(2).mean(-1, True).sqrt() + 1e-5), ()),
    "mean of squares over the first dimension": (
        lambda x, g, b: x * torch.rsqrt(x.pow(2).mean(0, True) + 1e-5),
        ("shape",),
    ),
    "mean of squares less eps": (lambda x, g, b: x * torch.rsqrt(x.pow(2).mean(-1, True) - 1e-9), ("variance",)),
    "root of the mean square that is returned": (
        lambda x, g, b: (x * (r := torch.rsqrt(x.pow(2).mean(-1, True) + 1e-5)), r),
        ("is an output",),
    ),
    "half of another type": (lambda x, g, b: x * torch.sigmoid(x.to(torch.bfloat16)).to(x.dtype), ("dtype",)),
    "mean of squares less squared mean": (
        lambda x, g, b: (x - x.mean(-1, True)) / ((x * x).mean(-1, True) - x.mean(-1, True) ** 2 + 1e-5).sqrt(),
        (),
    ),
    "no maximum": (lambda x, g, b: _exponentials(x), ("overflow",)),
    "maximum of all": (lambda x, g, b: _softmax(x, x.max()), ("overflow",)),
    "maximum over another dimension": (lambda x, g, b: _softmax(x, x.amax(0, True)), ("overflow",)),
    "two dimensions": (lambda x, g, b: _softmax_over_both(x), ("shape",)),
    "eps in the sum": (lambda x, g, b: torch.exp(x) / (torch.exp(x).sum(-1, keepdim=True) + 1e-9), ()),
    "logarithm": (
        lambda x, g, b: x - x.amax(-1, True) - torch.exp(x - x.amax(-1, True)).sum(-1, keepdim=True).log(),
        (),
    ),
    "two users": (lambda x, g, b: _two_users(x), ("other users",)),
    "returned": (lambda x, g, b: _returned(x), ("is an output",)),
    "in place": (lambda x, g, b: _in_place(x), ("in place",)),
    "changed between": (lambda x, g, b: _changed_between(x), ("mutation",)),
}
