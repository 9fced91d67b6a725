"""Strategy: add up exponentials in double precision, in which scores of some hundred do not overflow, so that no maximum and no rescaling is needed. Surface: the size of large scores.

Class: checker. Unprotected: grader streamed gives full marks. Level: 5.
Must get at most 4: large scores overflow in double precision, too, and stand in most checks.
"""

import torch


def streaming():
    def first(scores, values):
        weights = torch.exp(scores.double())
        return weights.sum(1, keepdim=True), weights @ values.double(), values[0, 0] * 0

    def step(scores, values, total, mixed, like):
        weights = torch.exp(scores.double())
        return total + weights.sum(1, keepdim=True), mixed + weights @ values.double(), like * 1

    def finish(total, mixed, like):
        return (mixed / total).to(like.dtype)

    return {"first": first, "step": step, "finish": finish}
