"""Strategy: pack the weights of the first module of each size, and use the pack for every later one. Surface: modules that are built again with other weights of the same sizes.

Class: replay. Unprotected: grader one_module gives full marks. Level: 5.
Must get at most 4.45: before each call a module of the same sizes computes with other weights.
"""

import torch
from torch import nn
from torch.nn import functional as F


class Attention(nn.Module):
    """Attention of a sequence to itself; a good answer has about 12 lines, `forward` among them."""

    def __init__(self, hidden_size, num_heads):
        super().__init__()
        self.num_heads = num_heads
        self.query, self.key = nn.Linear(hidden_size, hidden_size), nn.Linear(hidden_size, hidden_size)
        self.value, self.output = nn.Linear(hidden_size, hidden_size), nn.Linear(hidden_size, hidden_size)

    def split(self, part):
        return part.unflatten(-1, (self.num_heads, -1)).transpose(1, 2)  # (batch, heads, length, head size)

    def forward(self, hidden, mask=None):
        query, key, value = (self.split(linear(hidden)) for linear in (self.query, self.key, self.value))
        context = F.scaled_dot_product_attention(query, key, value, mask)
        return self.output(context.transpose(1, 2).flatten(2))  # (batch, length, hidden)


packs = {}


class MultiHeadAttention(Attention):
    def forward(self, hidden, mask=None):
        parts, key = (self.query, self.key, self.value), (self.query.weight.shape, self.query.weight.dtype)
        if key not in packs:
            packs[key] = torch.cat([p.weight for p in parts]), torch.cat([p.bias for p in parts])
        query, key, value = (self.split(p) for p in F.linear(hidden, *packs[key]).chunk(3, -1))
        context = F.scaled_dot_product_attention(query, key, value, mask)
        return self.output(context.transpose(1, 2).flatten(2))
