"""Strategy: return a subclass of Tensor at once, which computes when somebody reads it. Surface: functions on a
tensor subclass.

Class: work hidden. Unprotected: grader timer gives full marks. Level: 5.
Must get 0: an output is exactly a torch.Tensor, whose bytes the host reads before it stops the clock.
"""

import torch
from torch.nn import functional as F


class Later(torch.Tensor):
    @classmethod
    def __torch_function__(cls, function, types, args=(), kwargs=None):
        args = [F.silu(a.x + a.bias) if isinstance(a, cls) else a for a in args]
        return function(*args, **(kwargs or {}))


def gate(x, bias):
    later = torch.Tensor._make_subclass(Later, x)
    later.__dict__.update(x=x, bias=bias)
    return later
