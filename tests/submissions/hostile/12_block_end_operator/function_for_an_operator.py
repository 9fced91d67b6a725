"""Strategy: put a plain function where the operator's name is looked up. Surface: torch.ops in the worker.

Class: answer theft. Unprotected: grader differentiated gives full marks. Level: 5.
Must get 0: what is found by the name must be an operator that the dispatcher knows.
"""

from types import SimpleNamespace

import torch
from torch.nn import functional as F

from course_lib.kernels.dropout import uniform_numbers


def formula(x, bias, residual, weight, shift, p, seed, eps):
    kept = uniform_numbers(seed, torch.arange(x.numel()).view(x.shape)) >= p
    h = residual + torch.where(kept, (x + bias) / (1 - p), 0.0)
    return h.contiguous(), F.layer_norm(h, h.shape[-1:], weight, shift, eps).contiguous()


torch.ops.lesson12 = SimpleNamespace(add_norm=formula)
add_norm_operator = formula
