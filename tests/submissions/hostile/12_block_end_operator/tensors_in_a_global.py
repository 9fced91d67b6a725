"""Strategy: leave what backward needs in a list of the module, where backward finds that of the last call, whichever it differentiates. Surface: calls of which backward follows forward at once.

Class: replay. Unprotected: grader differentiated gives full marks. Level: 5.
Must get at most 5.1: another call is made between forward and backward.
"""

import torch
from torch import Tensor
from torch.nn import functional as F

from course_lib.kernels.dropout import uniform_numbers


def add_norm_operator(
    x: Tensor, bias: Tensor, residual: Tensor, weight: Tensor, shift: Tensor, p: float, seed: int, eps: float
) -> tuple[Tensor, Tensor]:
    h = residual + (x + bias) * factors(x, p, seed)
    return h, F.layer_norm(h, h.shape[-1:], weight, shift, eps)


def factors(like, p, seed):
    at = torch.arange(like.numel(), device=like.device).view(like.shape)
    return (uniform_numbers(seed, at) >= p).to(like.dtype) / (1 - p)


def forms(x, bias, residual, weight, shift, p, seed, eps):
    return x.new_empty(x.shape), x.new_empty(x.shape)


LAST = []


def save(ctx, inputs, output):
    LAST[:] = [output[0].detach(), inputs[3].detach(), inputs[5:]]


def backward(ctx, grad_h, grad_y):
    h, weight, (p, seed, eps) = LAST
    rstd = torch.rsqrt(h.var(-1, keepdim=True, correction=0) + eps)
    normed = (h - h.mean(-1, keepdim=True)) * rstd
    g = grad_y * weight
    by_h = grad_h + rstd * (g - g.mean(-1, keepdim=True) - normed * (g * normed).mean(-1, keepdim=True))
    grad_x = by_h * factors(h, p, seed)
    return grad_x, grad_x.sum(0), by_h, (grad_y * normed).sum(0), grad_y.sum(0), None, None, None


operator = torch.library.custom_op("lesson12::add_norm", add_norm_operator, mutates_args=())
operator.register_fake(forms)
operator.register_autograd(backward, setup_context=save)
