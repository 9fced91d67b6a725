"""Strategy: keep results by the identity of the input object and its version. Surface: objects that are passed
again, and memory of objects that was freed.

Class: replay. Unprotected: grader timer gives full marks. Level: 5.
Must get 0: each timed call has fresh inputs, whatever object holds them, and each timed output is verified.
"""

from torch.nn import functional as F

known = {}


def gate(x, bias):
    key = (id(x), x._version)
    if key not in known:
        known[key] = (x, F.silu(x + bias))
    return known[key][1]
