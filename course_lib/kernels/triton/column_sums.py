"""Add up what the programs of a backward kernel have summed, each over its own rows, in one launch for all vectors."""

import torch
import triton
import triton.language as tl

from course_lib.kernels.triton.tiles import on_device_of

_ROWS, _COLUMNS = 128, 16  # of a tile: narrow, so that a short row occupies many processors


def total_sums(partial: torch.Tensor, dtype: torch.dtype) -> list[torch.Tensor]:
    """Return the sums over the rows of each matrix of `partial`, (matrices, rows, columns), in `dtype`.

    Each is a tensor of its own, since results of an operator may not share memory.
    """
    matrices, num_rows, num_columns = partial.shape
    totals = [torch.empty(num_columns, dtype=dtype, device=partial.device) for _ in range(matrices)]
    first, second, third = (*totals, *totals[:1] * (3 - matrices))[:3]
    with on_device_of(partial):
        _total[(triton.cdiv(num_columns, _COLUMNS), matrices)](
            partial, (first, second, third), (num_rows, num_columns), ROWS=_ROWS, COLUMNS=_COLUMNS
        )
    return totals


@triton.jit
def _total(partial_ptr, totals, sizes, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    num_rows, num_columns = sizes
    matrix = tl.program_id(1)
    column = tl.program_id(0) * COLUMNS + tl.arange(0, COLUMNS)
    is_column = column < num_columns
    sums = tl.zeros([ROWS, COLUMNS], tl.float32)
    for first in range(0, num_rows, ROWS):
        row = first + tl.arange(0, ROWS)
        at = (matrix * num_rows + row).to(tl.int64)[:, None] * num_columns + column[None, :]
        sums += tl.load(partial_ptr + at, mask=(row < num_rows)[:, None] & is_column[None, :], other=0.0)
    total = tl.sum(sums, axis=0)
    if matrix == 0:
        tl.store(totals[0] + column, total, mask=is_column)
    elif matrix == 1:
        tl.store(totals[1] + column, total, mask=is_column)
    else:
        tl.store(totals[2] + column, total, mask=is_column)
