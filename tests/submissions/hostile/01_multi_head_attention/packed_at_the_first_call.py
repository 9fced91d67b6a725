"""Strategy: pack the weights at the first call of a module, and never again. Surface: a module whose weights change after its first call, as in training.

Class: replay. Unprotected: grader one_module gives full marks. Level: 5.
Must get at most 4.5: the same module computes with other weights before each call.
"""

import torch
from torch import nn
from torch.nn import functional as F


# The reference solution stands here, and is called Attention.


class MultiHeadAttention(Attention):
    def forward(self, hidden, mask=None):
        if not hasattr(self, "pack"):
            parts = (self.query, self.key, self.value)
            self.pack = torch.cat([p.weight for p in parts]), torch.cat([p.bias for p in parts])
        query, key, value = (self.split(p) for p in F.linear(hidden, *self.pack).chunk(3, -1))
        context = F.scaled_dot_product_attention(query, key, value, mask)
        return self.output(context.transpose(1, 2).flatten(2))
