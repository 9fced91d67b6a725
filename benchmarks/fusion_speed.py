"""Measure how long `fuse` takes on encoders of 12 to 150 layers, whose operators are written out.

    python -m benchmarks.fusion_speed [--layers COUNT ...] [--runs COUNT] [--profile] [--quick]

Each layer has attention, two LayerNorms and a GELU as formulas, dropouts, and projections whose transposed keys are
computed twice. Each run is timed in CPU seconds, beside a fixed computation of Python and PyTorch before and after it:
on a busy machine both take longer, so their ratio says more than the seconds. The fewest seconds of all runs count.

Exit status: 0 if the time for each node of the largest graph is at most 1.5 times that of the smallest, 1 otherwise.
"""

import argparse
import cProfile
import math
import pstats
import sys
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import nn

from course_lib.capture import capture
from course_lib.fusion import fuse

Tensor = torch.Tensor
WIDTH, HEADS, ROWS = 32, 4, 6
LAYERS = (12, 24, 48, 96, 150)
MOST_GROWTH = 1.5


class Norm(nn.Module):
    """LayerNorm as a formula."""

    def __init__(self) -> None:
        super().__init__()
        self.weight, self.bias = nn.Parameter(torch.ones(WIDTH)), nn.Parameter(torch.zeros(WIDTH))

    def forward(self, x: Tensor) -> Tensor:
        """Normalise the last dimension."""
        mean = x.mean(-1, keepdim=True)
        variance = (x - mean).pow(2).mean(-1, keepdim=True)
        return (x - mean) / torch.sqrt(variance + 1e-12) * self.weight + self.bias


class Layer(nn.Module):
    """One layer of an encoder in the manner of BERT."""

    def __init__(self) -> None:
        super().__init__()
        self.query, self.key, self.value, self.output = (nn.Linear(WIDTH, WIDTH) for _ in range(4))
        self.inner, self.outer = nn.Linear(WIDTH, 2 * WIDTH), nn.Linear(2 * WIDTH, WIDTH)
        self.first, self.second, self.drop = Norm(), Norm(), nn.Dropout(0.1)

    def _split(self, x: Tensor) -> Tensor:
        return x.view(x.size(0), x.size(1), HEADS, WIDTH // HEADS).permute(0, 2, 1, 3)

    def forward(self, x: Tensor, mask: Tensor) -> Tensor:
        """Return the next hidden states."""
        q, k, v = self._split(self.query(x)), self._split(self.key(x)), self._split(self.value(x))
        scores = torch.matmul(q, k.transpose(-1, -2)) / math.sqrt(WIDTH // HEADS) + mask
        context = torch.matmul(self.drop(F.softmax(scores, dim=-1)), v).permute(0, 2, 1, 3).contiguous()
        x = self.first(self.drop(self.output(context.view(x.size(0), x.size(1), WIDTH))) + x)
        h = self.inner(x)
        h = h * 0.5 * (1.0 + torch.erf(h / math.sqrt(2.0)))
        return self.second(self.drop(self.outer(h)) + x)  # type: ignore[no-any-return]  # torch types calls as Any


class Encoder(nn.Module):
    """Layers one after the other."""

    def __init__(self, layers: int) -> None:
        super().__init__()
        self.layers = nn.ModuleList(Layer() for _ in range(layers))

    def forward(self, x: Tensor, mask: Tensor) -> Tensor:
        """Return the last hidden states."""
        for layer in self.layers:
            x = layer(x, mask)
        return x


@dataclass(frozen=True)
class Measured:
    """Hold the fewest CPU seconds of one graph, and those of the fixed computation beside them."""

    nodes: int
    fused: int
    graph_s: float  # `fuse` of a captured graph
    model_s: float  # `fuse` of the model: with capture and check
    fixed_s: float


def fixed_work() -> None:
    """Compute something of fixed length in Python and PyTorch; it takes about 0.2 s on an idle core of today."""
    x, total = torch.ones(16, 16), {}
    for number in range(20_000):
        total[number % 97] = (number, str(number))
        x = x * 0.999 + 0.001


def cpu_seconds(run: Callable[[], object]) -> float:
    """Return the CPU seconds of one call."""
    start = time.process_time()
    run()
    return time.process_time() - start


def measure(layers: int, runs: int) -> Measured:
    """Fuse one encoder several times."""
    model = Encoder(layers).eval()
    inputs = torch.randn(2, ROWS, WIDTH), torch.zeros(1, 1, 1, ROWS)
    captured = capture(model, inputs)
    result = fuse(captured, inputs)
    found = [
        (cpu_seconds(lambda: fuse(captured, inputs)), cpu_seconds(lambda: fuse(model, inputs)), cpu_seconds(fixed_work))
        for _ in range(runs)
    ]
    graph_s, model_s, fixed_s = (min(column) for column in zip(*found, strict=True))
    return Measured(len(captured.graph_module.graph.nodes), result.num_matches, graph_s, model_s, fixed_s)


def main() -> int:
    """Measure each size, and print a table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--layers", type=int, nargs="+", default=LAYERS)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--profile", action="store_true", help="print the functions that take the most time")
    parser.add_argument("--quick", action="store_true", help="two small graphs, one run")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    if options.profile:
        profile = cProfile.Profile()
        profile.runcall(measure, options.layers[0], 1)
        pstats.Stats(profile).sort_stats("tottime").print_stats(45)
        return 0
    print(
        f"{'layers':>8}{'nodes':>8}{'fused':>8}{'graph, s':>10}{'model, s':>10}{'fixed, s':>10}{'graph/fixed':>13}",
        end="",
    )
    print(f"{'ms a node':>11}")
    found = []
    for layers in (2, 4) if options.quick else options.layers:
        one = measure(layers, 1 if options.quick else options.runs)
        found.append(one)
        print(
            f"{layers:>8}{one.nodes:>8}{one.fused:>8}{one.graph_s:>10.2f}{one.model_s:>10.2f}{one.fixed_s:>10.3f}",
            end="",
        )
        print(f"{one.graph_s / one.fixed_s:>13.1f}{1000 * one.graph_s / one.nodes:>11.2f}", flush=True)
    costs = [one.graph_s / one.fixed_s / one.nodes for one in found]
    print(f"\na node of the largest graph takes {costs[-1] / costs[0]:.2f} times that of the smallest")
    return int(costs[-1] > MOST_GROWTH * costs[0])


if __name__ == "__main__":
    sys.exit(main())
