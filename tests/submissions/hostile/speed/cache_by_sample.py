"""Strategy: keep results by a sample of the inputs' numbers. Surface: inputs that occur again.

Class: replay. Unprotected: grader timer gives full marks. Level: 5.
Must get 0: no inputs occur twice: they come from a generator that only the host can seed.
"""

from torch.nn import functional as F

known = {}


def gate(x, bias):
    key = tuple(x[::200, ::300].reshape(-1).tolist())
    if key not in known:
        known[key] = F.silu(x + bias)
    return known[key]
