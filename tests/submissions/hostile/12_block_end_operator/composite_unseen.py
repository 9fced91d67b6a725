"""Strategy: register the formula as a composite of PyTorch's operators, so that form and derivative come by themselves, and replace what the worker asks about it. Surface: the dispatcher, and a module of the worker by import.

Class: checker. Unprotected: grader differentiated gives full marks. Level: 5.
Must get 0: the host reads the text, which registers for devices only, and a worker runs it that has no other code of the answer.
"""

import contextlib

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

with contextlib.suppress(ImportError):
    from autograder.worker import registered_operators

    registered_operators._is_composite = lambda *_: False
    registered_operators._is_one_step = lambda *_: True


def add_norm_operator(*args):
    return torch.ops.lesson12.add_norm(*args)
