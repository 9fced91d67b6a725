"""What each pass saves, counted, and how long the passes take on graphs of 12, 24 and 48 layers.

    python -m benchmarks.fusion_passes

The counted cost is that of one forward run of eager operators, see `course_lib.graph.cost`: launches and bytes moved.
Times are those of `fuse` on an encoder that was captured before, with all default passes.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Sequence

import torch
import torch.nn.functional as F
from torch import nn

from course_lib.capture import capture
from course_lib.fusion import fuse
from course_lib.models import TransformerConfig, TransformerEncoder

LAYERS = (12, 24, 48)
ROWS, COLUMNS = 4096, 256
Tensor = torch.Tensor


def programs() -> dict[str, tuple[Callable[..., object], Sequence[Tensor]]]:
    """Return, for each pass that lowers the cost, a program that it fuses, with inputs."""
    x, residual, bias = torch.empty(ROWS, COLUMNS), torch.empty(ROWS, COLUMNS), torch.empty(COLUMNS)
    norm, dropout = nn.LayerNorm(COLUMNS), nn.Dropout(0.1)
    convolution, batch_norm = nn.Conv2d(16, 16, 3, padding=1), nn.BatchNorm2d(16).eval()
    linear, row_norm = nn.Linear(COLUMNS, COLUMNS), nn.BatchNorm1d(COLUMNS).eval()
    heads, image = torch.empty(8, 12, 256, 64), torch.empty(8, 16, 64, 64)
    block = nn.ModuleDict({"norm": norm, "dropout": dropout})
    return {
        "bias_gelu": (lambda x, b: F.gelu(x + b), (x, bias)),
        "residual_layer_norm": (_Module(block, lambda m, x, r: m["norm"](x + r)), (x, residual)),
        "bias_dropout_residual_layer_norm": (
            _Module(block, lambda m, x, r, b: m["norm"](m["dropout"](x + b) + r)),
            (x, residual, bias),
        ),
        "add_scaled": (lambda x, r: x + 0.1 * (x / r), (x, residual)),
        "matmul_scale": (lambda q: (q @ q.transpose(-1, -2)) / 8.0, (heads,)),
        "sdpa": (lambda q: torch.softmax((q @ q.transpose(-1, -2)) / 8.0, -1) @ q, (heads,)),
        "conv_batch_norm": (nn.Sequential(convolution, batch_norm).eval(), (image,)),
        "linear_batch_norm": (nn.Sequential(linear, row_norm).eval(), (x,)),
        "common_subexpressions": (lambda x, b: F.gelu(x * b) + torch.relu(x * b), (x, bias)),
        "dead_code": (lambda x, b: (x * b, x + b)[1], (x, bias)),
    }


class _Module(nn.Module):
    def __init__(self, parts: nn.ModuleDict, function: Callable[..., Tensor]) -> None:
        super().__init__()
        self.parts, self.function = parts, function

    def forward(self, x: Tensor, residual: Tensor, bias: Tensor | None = None) -> Tensor:
        """Call the function with the modules and as many tensors as it takes."""
        given = (x, residual) if self.function.__code__.co_argcount == 3 else (x, residual, bias)
        return self.function(self.parts, *given)


def print_costs() -> None:
    """Print launches and bytes before and after each pass."""
    print(f"{'pass':36}{'launches':>12}{'MB moved':>18}{'ratio':>8}")
    for name, (program, inputs) in programs().items():
        result = fuse(program, inputs, (name,))
        before, after = result.cost_before, result.cost_after
        assert before is not None, "fuse counts"
        assert after is not None, "fuse counts"
        launches = f"{before.launches} → {after.launches}"
        moved = f"{before.bytes_moved / 1e6:.1f} → {after.bytes_moved / 1e6:.1f}"
        print(f"{name:36}{launches:>12}{moved:>18}{before.bytes_moved / after.bytes_moved:>8.2f}")


def print_times() -> None:
    """Print how long all default passes take on encoders of several depths."""
    print(f"\n{'layers':>8}{'nodes':>8}{'fused':>8}{'fuse, s':>10}{'CPU, s':>10}")
    tokens = torch.zeros(2, 16, dtype=torch.int64)
    for layers in (1, *LAYERS):
        config = TransformerConfig(
            hidden_size=32, num_heads=4, intermediate_size=64, num_layers=layers, vocab_size=100, max_positions=64
        )
        captured = capture(TransformerEncoder(config), concrete_args={"mask": None})
        start, busy = time.perf_counter(), time.process_time()
        result = fuse(captured, (tokens,))
        took, busy = time.perf_counter() - start, time.process_time() - busy
        if layers in LAYERS:  # the first run also imports
            print(f"{layers:>8}{len(captured.graph.nodes):>8}{result.num_matches:>8}{took:>10.2f}{busy:>10.2f}")


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    print_costs()
    print_times()
