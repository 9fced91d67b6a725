"""Strategy: call the backward of LayerNorm that PyTorch wrote in Python for its forward mode, with another function for its statistics. Surface: decompositions in a second file.

Class: answer theft. Unprotected: grader derived gives full marks. Level: 5.
Must get 0: that file is among those whose functions are refused while an answer is captured by dispatch.
"""

import torch
from torch._decomp import decompositions_for_jvp


def statistics(h):
    centred = h - h.mean(-1, keepdim=True)
    return h - centred, torch.rsqrt((centred * centred).mean(-1, keepdim=True) + 1e-5)


decompositions_for_jvp.recompute_mean_var = lambda h, *_, **__: statistics(h)


def backward(grad, x, bias, residual, kept, weight):
    h = (x + bias) * kept + residual
    by_h, by_weight, by_shift = decompositions_for_jvp.native_layer_norm_backward(
        grad, h, [h.shape[-1]], *statistics(h), weight, weight, [True] * 3
    )
    by_x = by_h * kept
    return by_x, by_x.sum(0), by_h, by_weight, by_shift
