"""Divide rows among the programs of a kernel."""

from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass

import torch
import triton
import triton.language as tl

_WARPS, _MOST_WARPS = 4, 16  # of a program
_ELEMENTS = 1024  # of a tile at least: eight for each of the 128 threads of four warps
# A lane's elements of a row that one warp has alone. At 1,024 columns and with a vector a lane spills 62 registers, and
# the kernel is still faster than with two or four warps a row.
ALONE_PER_LANE = 32
_REGISTERS = 65536 // 32  # for a warp's width, of one multiprocessor
_PROGRAMS_WHEN_INTERPRETED = 3  # few, so that each of them takes several tiles


@dataclass(frozen=True)
class Tiles:
    """Describe a matrix cut into tiles of `rows` whole rows; `columns` is the power of two that a row is padded to."""

    rows: int
    columns: int
    warps: int
    count: int


def tiles_of(matrix: torch.Tensor) -> Tiles:
    """Return how to cut a matrix that is not empty, with eight elements for a thread if possible."""
    columns = max(4, triton.next_power_of_2(matrix.shape[1]))
    rows = max(1, _ELEMENTS // columns)
    warps = min(16, max(4, rows * columns // (32 * 8)))
    return Tiles(rows, columns, warps, triton.cdiv(matrix.shape[0], rows))


@dataclass(frozen=True)
class PartedTiles(Tiles):
    """Describe tiles of which each row is `parts` times as wide as `columns`."""

    parts: int

    @property
    def per_lane(self) -> int:
        """Return how many elements of a tile a lane has."""
        return self.rows * self.columns * self.parts // (32 * self.warps)


def parted_tiles(matrix: torch.Tensor, *, most_per_lane: int) -> PartedTiles:
    """Return how to cut a matrix that is not empty so that as few warps share a row as `most_per_lane` allows.

    A lane reads 16 bytes at a time, and a part of a row is what the warps that share it read at a time. A program has
    these warps and no more: other rows would wait for its slowest (see `benchmarks/backward_tiles.py`).
    """
    num_rows, num_columns = matrix.shape
    at_a_time = 32 * 16 // matrix.element_size()
    most_per_lane = ALONE_PER_LANE if num_columns <= 32 * ALONE_PER_LANE else most_per_lane
    sharing = min(_MOST_WARPS, triton.next_power_of_2(triton.cdiv(num_columns, 32 * most_per_lane)))
    columns = min(sharing * at_a_time, max(4, triton.next_power_of_2(num_columns)))
    rows = max(1, sharing * at_a_time // columns)
    return PartedTiles(rows, columns, sharing, triton.cdiv(num_rows, rows), triton.cdiv(num_columns, columns))


def flat_tiles(matrix: torch.Tensor, *, per_lane: int) -> PartedTiles:
    """Return how to cut a matrix that is not empty into tiles of parts of rows; a program has one part."""
    num_rows, num_columns = matrix.shape
    columns = min(32 * 16 // matrix.element_size(), max(4, triton.next_power_of_2(num_columns)))
    rows = max(1, _WARPS * 32 * per_lane // columns)
    return PartedTiles(rows, columns, _WARPS, triton.cdiv(num_rows, rows), triton.cdiv(num_columns, columns))


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
