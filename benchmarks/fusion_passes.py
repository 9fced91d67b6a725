"""Count what each pass saves, and measure the time of the passes on graphs of 12, 24 and 48 layers.

    python -m benchmarks.fusion_passes [--quick]

The counted cost is that of one forward run of eager operators, see `course_lib.graph.cost`: launches, bytes moved, and
bytes that are alive at once.
Times are those of `fuse` with all default passes on a captured encoder. One encoder is captured by torch.fx, where a
module of torch.nn is one node. Another is exported and decomposed, where 12 layers have about 1,000 nodes. If the time
for a node is the same from 12 layers to 48, the time is linear. CPU time is that of this process; other work on the
machine increases it. The last line is the CPU time of importing all public packages, without that of importing torch.
"""

import argparse
import pkgutil
import subprocess
import sys
import time
import warnings
from collections.abc import Callable, Sequence

import torch
import torch.nn.functional as F
from torch import fx, nn

import course_lib
from course_lib.capture import capture
from course_lib.fusion import MatmulScale, fuse
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
        "qkv_merge": (
            lambda x, q, k, v: F.linear(x, q) * F.linear(x, k) * F.linear(x, v),
            (x, *(torch.empty(COLUMNS, COLUMNS) for _ in range(3))),
        ),
        "common_subexpressions": (lambda x, b: F.gelu(x * b) + torch.relu(x * b), (x, bias)),
        "dead_code": (lambda x, b: (x * b, x + b)[1], (x, bias)),
        "memory_order": (_both_made_first, (x, residual)),
    }


def _both_made_first(x: Tensor, residual: Tensor) -> Tensor:
    left, right = x * residual, x + residual
    return left.sum(0) - right.sum(0)


class _Module(nn.Module):
    def __init__(self, parts: nn.ModuleDict, function: Callable[..., Tensor]) -> None:
        super().__init__()
        self.parts, self.function = parts, function

    def forward(self, x: Tensor, residual: Tensor, bias: Tensor | None = None) -> Tensor:
        """Call the function with the modules and as many tensors as it takes."""
        given = (x, residual) if self.function.__code__.co_argcount == 3 else (x, residual, bias)
        return self.function(self.parts, *given)


def print_costs() -> None:
    """Print launches, bytes moved and bytes alive at once, before and after each pass."""
    print(f"{'pass':36}{'launches':>12}{'MB moved':>18}{'ratio':>8}{'MB alive at once':>20}")
    for name, (program, inputs) in programs().items():
        result = fuse(program, inputs, (MatmulScale(within_range=True) if name == MatmulScale.name else name,))
        before, after = result.cost_before, result.cost_after
        assert before is not None, "fuse counts"
        assert after is not None, "fuse counts"
        launches = f"{before.launches} → {after.launches}"
        moved = f"{before.bytes_moved / 1e6:.1f} → {after.bytes_moved / 1e6:.1f}"
        alive = f"{before.peak_bytes / 1e6:.1f} → {after.peak_bytes / 1e6:.1f}"
        print(f"{name:36}{launches:>12}{moved:>18}{before.bytes_moved / after.bytes_moved:>8.2f}{alive:>20}")


def print_times(depths: Sequence[int], *, warm_up: bool) -> None:
    """Print how long all default passes take on encoders of several depths; the first run also imports."""
    print(f"\n{'layers':>8}{'nodes':>8}{'fused':>8}{'CPU, s':>10}{'CPU, ms/node':>14}  captured by")
    tokens = torch.zeros(2, 16, dtype=torch.int64)
    for kind, captured in (("torch.fx", _traced), ("torch.export, decomposed", _decomposed)):
        for layers in (1, *depths) if warm_up else depths:
            graph = captured(_encoder(layers), tokens)
            busy = time.process_time()
            result = fuse(graph, (tokens,))
            busy = time.process_time() - busy
            if layers in depths:
                nodes = len(graph.graph.nodes)
                print(f"{layers:>8}{nodes:>8}{result.num_matches:>8}{busy:>10.2f}{1e3 * busy / nodes:>14.2f}  {kind}")


def _encoder(layers: int) -> TransformerEncoder:
    config = TransformerConfig(
        hidden_size=32, num_heads=4, intermediate_size=64, num_layers=layers, vocab_size=100, max_positions=64
    )
    return TransformerEncoder(config)


def _traced(model: TransformerEncoder, tokens: Tensor) -> fx.GraphModule:
    return capture(model, concrete_args={"mask": None}).graph_module


def _decomposed(model: TransformerEncoder, tokens: Tensor) -> fx.GraphModule:
    graph = torch.export.export(model, (tokens,)).run_decompositions().module()
    assert isinstance(graph, fx.GraphModule), "an exported program is a graph"
    return graph


def print_import_time() -> None:
    """Print the time of importing the library without that of torch, each the least of several runs."""
    alone, together = (min(import_seconds(names) for _ in range(3)) for names in (("torch",), public_packages()))
    print(f"\nimporting course_lib: {together - alone:.2f} CPU s beyond torch ({alone:.2f})")


def public_packages() -> tuple[str, ...]:
    """Return the packages of the library that a notebook imports, torch first."""
    names = sorted(f"course_lib.{module.name}" for module in pkgutil.iter_modules(course_lib.__path__))
    return ("torch", *names)


def import_seconds(names: Sequence[str]) -> float:
    """Return the CPU time, in seconds, that a fresh interpreter needs to import modules."""
    code = f"import time, {', '.join(names)}; print(time.process_time())"
    run = subprocess.run([sys.executable, "-W", "ignore", "-c", code], capture_output=True, text=True, check=True)
    return float(run.stdout)


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    parser = argparse.ArgumentParser(description="What each pass saves, and how long the passes take.")
    parser.add_argument("--quick", action="store_true", help="graphs of two layers only")
    print_costs()
    quick = parser.parse_args().quick
    print_times((2,) if quick else LAYERS, warm_up=not quick)
    if not quick:
        print_import_time()
