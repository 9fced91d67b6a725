"""Strategy: register the formula as a composite of PyTorch's operators, and put other functions where the worker asks whether it is one. Surface: functions and attributes of PyTorch in the worker.

Class: answer theft. Unprotected: grader differentiated gives full marks. Level: 5.
Must get 0: what the worker asks PyTorch with is kept from before the answer was loaded.
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
library.impl("add_norm", formula, "CompositeImplicitAutograd")


def add_norm_operator(*args):
    return torch.ops.lesson12.add_norm(*args)


torch._C._dispatch_has_kernel_for_dispatch_key = lambda *_: False
torch.Tensor.grad_fn = None
