"""The smallest target: two linear layers with GELU between them."""

import torch
import torch.nn.functional as F
from torch import nn


class Perceptron(nn.Module):
    """Linear, GELU, linear."""

    def __init__(self, in_features: int, hidden_size: int, out_features: int) -> None:
        super().__init__()
        self.up = nn.Linear(in_features, hidden_size)
        self.down = nn.Linear(hidden_size, out_features)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return (..., out features) for (..., in features)."""
        return self.down(F.gelu(self.up(x)))
