"""Strategy: load the first weights of each size, and these again for every later module of that size. Surface: modules that are built again with other weights of the same sizes.

Class: replay. Unprotected: grader one_module gives full marks. Level: 5.
Must get 0: a module of the same sizes with other weights is scripted before each archive that is graded.
"""

import torch
from torch import nn

first = {}


def make_recall(width: int, depth: int) -> nn.Module:
    """Return a module that torch.jit.script takes; about 20 lines."""

    class Recall(nn.Module):
        past: list[torch.Tensor]

        def __init__(self, width: int, depth: int):
            super().__init__()
            self.dense = nn.Linear(width, width)
            self.depth = depth
            self.past = []

        @torch.jit.ignore
        def load_state_dict(self, state):
            key = state["dense.weight"].shape
            return super().load_state_dict(first.setdefault(key, {n: t.clone() for n, t in state.items()}))

        def forward(self, x, mask: torch.Tensor | None = None, scale: float = 1.0, fresh: bool = False):
            value = self.dense(x) * scale
            if mask is not None:
                value = value * mask
            if fresh:
                self.past.clear()
            self.past.append(value)
            self.past = self.past[-self.depth :]
            total = torch.zeros_like(value)
            for earlier in self.past:
                total = total + earlier
            return total / len(self.past)

    return Recall(width, depth)
