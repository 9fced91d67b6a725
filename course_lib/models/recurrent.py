"""Define recurrent networks with explicit loops, for scripting.

All code here is in the subset of Python that TorchScript compiles.
"""

import math

import torch
from torch import nn


class RecurrentCell(nn.Module):
    """Compute one step of an Elman network: tanh(W x + b + U h + c)."""

    def __init__(self, in_features: int, hidden_size: int) -> None:
        super().__init__()
        self.hidden_size = hidden_size
        self.input = nn.Linear(in_features, hidden_size)
        self.state = nn.Linear(hidden_size, hidden_size)

    def forward(self, x: torch.Tensor, hidden: torch.Tensor) -> torch.Tensor:
        """Return the new hidden state (batch, hidden) for x (batch, features)."""
        return torch.tanh(self.input(x) + self.state(hidden))


class RecurrentNetwork(nn.Module):
    """Run a recurrent cell over a sequence in a loop, and print each step if asked to."""

    def __init__(self, in_features: int, hidden_size: int, *, announce: bool = False) -> None:
        super().__init__()
        self.cell = RecurrentCell(in_features, hidden_size)
        self.announce = announce

    def forward(self, x: torch.Tensor, hidden: torch.Tensor | None = None) -> tuple[torch.Tensor, torch.Tensor]:
        """Return all hidden states (steps, batch, hidden) and the last one, for x (steps, batch, features)."""
        if hidden is None:
            hidden = x.new_zeros(x.size(1), self.cell.hidden_size)
        states: list[torch.Tensor] = []
        for step in range(x.size(0)):
            if self.announce:
                print("step", step)
            hidden = self.cell(x[step], hidden)
            states.append(hidden)
        return torch.stack(states), hidden


class LSTMCell(nn.Module):
    """Compute one step of a long short-term memory, with its four gates written out for a fuser.

    Source: Hochreiter & Schmidhuber (1997), with the forget gate of Gers et al. (2000). Weights have the names and the
    order (input, forget, cell, output) of `torch.nn.LSTMCell`, so state dicts fit both.
    """

    def __init__(self, in_features: int, hidden_size: int) -> None:
        super().__init__()
        self.hidden_size = hidden_size
        bound = 1 / math.sqrt(hidden_size)
        self.weight_ih = nn.Parameter(torch.empty(4 * hidden_size, in_features).uniform_(-bound, bound))
        self.weight_hh = nn.Parameter(torch.empty(4 * hidden_size, hidden_size).uniform_(-bound, bound))
        self.bias_ih = nn.Parameter(torch.empty(4 * hidden_size).uniform_(-bound, bound))
        self.bias_hh = nn.Parameter(torch.empty(4 * hidden_size).uniform_(-bound, bound))

    def forward(self, x: torch.Tensor, hidden: torch.Tensor, memory: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Return the new hidden state and memory, each (batch, hidden), for x (batch, features)."""
        gates = x @ self.weight_ih.t() + self.bias_ih + hidden @ self.weight_hh.t() + self.bias_hh  # (batch, 4 hidden)
        into, forget, cell, out = gates.chunk(4, 1)
        memory = torch.sigmoid(forget) * memory + torch.sigmoid(into) * torch.tanh(cell)
        return torch.sigmoid(out) * torch.tanh(memory), memory


class LSTMNetwork(nn.Module):
    """Run a long short-term memory over a sequence in a loop."""

    def __init__(self, in_features: int, hidden_size: int) -> None:
        super().__init__()
        self.cell = LSTMCell(in_features, hidden_size)

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Return all hidden states (steps, batch, hidden) and the last memory, for x (steps, batch, features)."""
        hidden = x.new_zeros(x.size(1), self.cell.hidden_size)
        memory = torch.zeros_like(hidden)
        states: list[torch.Tensor] = []
        for step in range(x.size(0)):
            hidden, memory = self.cell(x[step], hidden, memory)
            states.append(hidden)
        return torch.stack(states), memory
