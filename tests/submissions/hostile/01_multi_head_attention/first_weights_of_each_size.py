"""Strategy: pack the weights of the first module of each size, and use the pack for every later one. Surface: modules that are built again with other weights of the same sizes.

Class: replay. Unprotected: grader one_module gives full marks. Level: 5.
Must get at most 4.5: before each call a module of the same sizes computes with other weights.
"""

import torch
from torch import nn
from torch.nn import functional as F


# The reference solution stands here, and is called Attention.


packs = {}


class MultiHeadAttention(Attention):
    def forward(self, hidden, mask=None):
        parts, key = (self.query, self.key, self.value), (self.query.weight.shape, self.query.weight.dtype)
        if key not in packs:
            packs[key] = torch.cat([p.weight for p in parts]), torch.cat([p.bias for p in parts])
        query, key, value = (self.split(p) for p in F.linear(hidden, *packs[key]).chunk(3, -1))
        context = F.scaled_dot_product_attention(query, key, value, mask)
        return self.output(context.transpose(1, 2).flatten(2))
