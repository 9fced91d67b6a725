"""Time ways to cut the rows of the backward kernels into tiles, on a GPU: `parted_tiles` chooses among them.

    python3 benchmarks/backward_tiles.py

Prints, for each operator and size, the fastest cuts and the one that the library chooses: how many warps share a row,
how many warps a program has, how many warps a multiprocessor is given, and microseconds. Compiles them in parallel.
"""

import functools
import itertools
import os
import sys
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from multiprocessing import get_context
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # a GPU machine has this folder, but did not install it

import torch  # beside the next ones
import triton
from triton.testing import do_bench

from course_lib.kernels.triton.residual_norm import (
    ResidualNorm,
    backward_programs,
    norm_gradients_into,
)
from course_lib.kernels.triton.tiles import PartedTiles

ROWS = 65536
OPERATORS = ("residual_layer_norm", "bias_dropout_residual_layer_norm", "scale_dropout_residual_rms_norm")
WIDTHS = (768, 1024)
SHARING = (1, 2, 4)  # warps that have a row together
WARPS = (1, 2, 4, 8)  # of a program
RESIDENT = (4, 6, 8, 12, 16, 24, 32)  # warps that a multiprocessor is given at a time
SHOWN = 6


@dataclass(frozen=True)
class Cut:
    """One way to cut rows: `sharing` warps have a row together, and a program has `warps`."""

    operator: str
    width: int
    sharing: int
    warps: int


@dataclass(frozen=True)
class CutNorm(ResidualNorm):
    """A call whose rows are cut as is asked for."""

    cut: Cut | None = None

    def backward_tiles(self) -> PartedTiles:
        """Return the cut that was asked for; without one, what the library chooses."""
        if self.cut is None:
            return super().backward_tiles()
        columns, rows = 256 * self.cut.sharing, self.cut.warps // self.cut.sharing
        counts = -(-ROWS // rows), -(-self.cut.width // columns)
        return PartedTiles(rows, columns, self.cut.warps, *counts)


def call_of(operator: str, width: int, cut: Cut | None) -> CutNorm:
    """Return a call of the operator on tensors of bfloat16."""
    options: dict[str, Any] = {"device": "cuda", "dtype": torch.bfloat16}
    make = functools.partial(torch.randn, **options)
    plain, rms = operator == OPERATORS[0], operator == OPERATORS[2]
    vector, norm_bias = None if plain else make(width), None if rms else make(width)
    seed = None if plain else torch.tensor([3], device="cuda")
    p = 0.0 if plain else 0.1
    return CutNorm(make(ROWS, width), vector, make(ROWS, width), make(width), norm_bias, seed, p, 1e-5, rms, cut)


def timed(call: CutNorm, programs: int, *, once: bool = False) -> float:
    """Return the median time of the backward kernel in microseconds; NaN with `once`, which only compiles it."""
    grad, grad_x, grad_residual = (torch.randn_like(call.x) for _ in range(3))
    partial = torch.empty(call.sums(), programs, call.x.shape[1], dtype=torch.float32, device="cuda")
    into = grad_residual if call.seed is None else grad_x
    run = lambda: norm_gradients_into(into, grad_residual, partial, grad, call)  # noqa: E731  # beside its likeness
    if once:
        norm_gradients_into(into, grad_residual, partial, grad, call)
        torch.cuda.synchronize()
        return float("nan")
    return 1e3 * float(do_bench(run, warmup=5, rep=30, return_mode="median"))


def compiled(cut: Cut) -> bool:
    """Compile a cut in this process, for all; return whether it runs."""
    try:
        timed(call_of(cut.operator, cut.width, cut), 132, once=True)
    except (RuntimeError, triton.runtime.errors.OutOfResources) as error:
        print(f"{cut}: {str(error)[:200]}", flush=True)
        return False
    return True


def main() -> None:
    """Print the fastest cuts of each operator and size, and the library's own."""
    cuts = [Cut(*each) for each in itertools.product(OPERATORS, WIDTHS, SHARING, WARPS) if each[2] <= each[3]]
    with ProcessPoolExecutor(min(len(cuts), os.cpu_count() or 1), mp_context=get_context("spawn")) as pool:
        runs = list(pool.map(compiled, cuts))
    processors = torch.cuda.get_device_properties(0).multi_processor_count
    for operator, width in itertools.product(OPERATORS, WIDTHS):
        call = call_of(operator, width, None)
        own, tiles = backward_programs(call), call.backward_tiles()
        found = [(timed(call, own), f"chosen: {tiles}, {own} programs")]
        for cut in (c for c, ran in zip(cuts, runs, strict=True) if ran and (c.operator, c.width) == (operator, width)):
            for resident in (r for r in RESIDENT if r % cut.warps == 0):
                us = timed(replace(call, cut=cut), processors * resident // cut.warps)
                found.append((us, f"{cut.sharing} warps a row, {cut.warps} a program, {resident} resident"))
        print(f"\n{operator} {ROWS} × {width}")
        for us, told in sorted(found)[:SHOWN] + ([found[0]] if found[0] not in sorted(found)[:SHOWN] else []):
            print(f"- {us:.1f} µs: {told}", flush=True)


if __name__ == "__main__":
    main()
