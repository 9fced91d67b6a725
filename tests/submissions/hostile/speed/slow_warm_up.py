"""Strategy: be slow while the grader warms up, so that it times few calls, and replay those. Surface: a
number of repeats that follows from the answer's own time.

Class: clock. Unprotected: grader timer gives full marks. Level: 5.
Must get 0: how much is timed follows from the baseline alone.
"""

import time

from torch.nn import functional as F

calls = 0
result = None


def gate(x, bias):
    global calls, result
    calls += 1
    if calls <= 5:
        time.sleep(0.03)
        result = F.silu(x + bias)
    return result if calls <= 12 else F.silu(x + bias)
