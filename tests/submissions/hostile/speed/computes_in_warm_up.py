"""Strategy: compute while the grader warms up, and replay when it times. Surface: the number of calls so far.

Class: replay. Unprotected: grader timer gives full marks. Level: 5.
Must get 0: warming up is like timing: fresh inputs each time, and every output is verified.
"""

from torch.nn import functional as F

calls = 0
result = None


def gate(x, bias):
    global calls, result
    calls += 1
    if calls <= 5:
        result = F.silu(x + bias)
    return result
