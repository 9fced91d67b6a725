"""Divide rows among the programs of a kernel. The sizes are estimates, which no GPU has tuned."""

from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass

import torch
import triton
import triton.language as tl

_ELEMENTS = 1024  # of a tile at least: eight for each of the 128 threads of four warps
_REGISTERS = 65536 // 32  # for a warp's width, of one multiprocessor
_PROGRAMS_WHEN_INTERPRETED = 3  # few, so that each of them takes several tiles


@dataclass(frozen=True)
class Tiles:
    """Describe a matrix cut into tiles of `rows` whole rows; `columns` is the power of two that a row is padded to."""

    rows: int
    columns: int
    warps: int
    count: int


def tiles_of(matrix: torch.Tensor, *, per_thread: int = 8) -> Tiles:
    """Return how to cut a matrix that is not empty, with the given number of elements for a thread if possible."""
    columns = max(4, triton.next_power_of_2(matrix.shape[1]))
    rows = max(1, _ELEMENTS // columns)
    warps = min(16, max(4, rows * columns // (32 * per_thread)))
    return Tiles(rows, columns, warps, triton.cdiv(matrix.shape[0], rows))


def persistent_programs(matrix: torch.Tensor, tiles: Tiles, *, registers: int) -> int:
    """Return the number of programs to start when each takes many tiles and adds up something over rows.

    It is the number that the GPU runs at a time if a thread needs so many `registers`. With more programs, most of the
    GPU would idle during the last ones, and each writes one more row to add up.
    """
    if not matrix.is_cuda:
        return min(tiles.count, _PROGRAMS_WHEN_INTERPRETED)
    processors = torch.cuda.get_device_properties(matrix.device).multi_processor_count
    return min(tiles.count, processors * max(1, _REGISTERS // (registers * tiles.warps)))


def as_matrix(tensor: torch.Tensor) -> torch.Tensor:
    """Return the tensor as a matrix of its rows: a view where the strides allow it, else a copy."""
    return tensor.reshape(-1, tensor.shape[-1])


def on_device_of(tensor: torch.Tensor) -> AbstractContextManager[object]:
    """Return the context in which a kernel for `tensor` is launched; Triton takes the current device."""
    return torch.cuda.device(tensor.device) if tensor.is_cuda else nullcontext()


@triton.jit
def load_rows(pointer, row, column, strides, inside):
    """Return a tile of a matrix as float32, zero outside; offsets are 64-bit numbers, also those of columns."""
    return tl.load(pointer + row * strides[0] + column.to(tl.int64) * strides[1], mask=inside, other=0.0).to(tl.float32)


@triton.jit
def load_vector(pointer, column, is_column):
    """Return a vector as float32, zero outside."""
    return tl.load(pointer + column, mask=is_column, other=0.0).to(tl.float32)
