"""Strategy: register the formula in PyTorch twice, once for tensors that need gradients, so that these come by themselves. Surface: the dispatcher's key for autograd.

Class: answer theft. Unprotected: grader differentiated gives full marks. Level: 5.
Must get at most 3.9: the derivative of an operator leads from its outputs to its inputs in one step; values and forms count without it.
"""

import torch
from torch.nn import functional as F

from course_lib.kernels.dropout import uniform_numbers


def formula(x, bias, residual, weight, shift, p, seed, eps):
    kept = uniform_numbers(seed, torch.arange(x.numel()).view(x.shape)) >= p
    h = residual + torch.where(kept, (x + bias) / (1 - p), 0.0)
    return h.contiguous(), F.layer_norm(h, h.shape[-1:], weight, shift, eps).contiguous()


library = torch.library.Library("lesson12", "DEF")
library.define(
    "add_norm(Tensor x, Tensor bias, Tensor residual, Tensor weight, Tensor shift, float p, int seed, float eps)"
    " -> (Tensor, Tensor)"
)
library.impl("add_norm", formula, "CompositeExplicitAutograd")
library.impl("add_norm", formula, "Autograd")


def add_norm_operator(*args):
    return torch.ops.lesson12.add_norm(*args)
