"""Compute on tiles of rows that are cut into parts: a tuple has one tensor for each part.

A tensor's sides are powers of two in Triton. Three parts of 256 columns hold a row of 768 without a lane to spare.
"""

import triton
import triton.language as tl

from course_lib.kernels.triton.tiles import load_rows, load_vector


@triton.jit
def no_parts():
    """Return an empty tuple, to which parts are added."""
    return ()


@triton.jit
def columns_of(part, COLUMNS: tl.constexpr):
    """Return the numbers of a part's columns."""
    return part * COLUMNS + tl.arange(0, COLUMNS)[None, :]


@triton.jit
def places(row, part, sizes, COLUMNS: tl.constexpr):
    """Return where a part of rows lies in a contiguous matrix, and which of its elements are inside."""
    column = columns_of(part, COLUMNS)
    return row * sizes[1] + column, (row < sizes[0]) & (column < sizes[1])


@triton.jit
def zero_parts(ROWS: tl.constexpr, COLUMNS: tl.constexpr, PARTS: tl.constexpr):
    """Return parts of zeros."""
    found = no_parts()
    for _ in tl.static_range(PARTS):
        found += (tl.zeros([ROWS, COLUMNS], tl.float32),)
    return found


@triton.jit
def load_parts(pointer, num_columns, COLUMNS: tl.constexpr, PARTS: tl.constexpr):
    """Return the parts of a vector as float32, zero outside."""
    found = no_parts()
    for part in tl.static_range(PARTS):
        column = columns_of(part, COLUMNS)
        found += (load_vector(pointer, column, column < num_columns),)
    return found


@triton.jit
def load_row_parts(pointer, row, sizes, strides, COLUMNS: tl.constexpr, PARTS: tl.constexpr):
    """Return the parts of rows as float32, zero outside."""
    found = no_parts()
    for part in tl.static_range(PARTS):
        column = columns_of(part, COLUMNS)
        inside = (row < sizes[0]) & (column < sizes[1])
        found += (load_rows(pointer, row, column, strides, inside),)
    return found


@triton.jit
def added(parts, PARTS: tl.constexpr):
    """Return the sum of the parts, not yet summed over columns."""
    found = parts[0]
    for part in tl.static_range(1, PARTS):
        found += parts[part]
    return found


@triton.jit
def centred(rows, num_columns, COLUMNS: tl.constexpr, PARTS: tl.constexpr):
    """Return the rows without their mean, zero outside."""
    mean = tl.sum(added(rows, PARTS), axis=1)[:, None] / num_columns
    found = no_parts()
    for part in tl.static_range(PARTS):
        found += (tl.where(columns_of(part, COLUMNS) < num_columns, rows[part] - mean, 0.0),)
    return found


@triton.jit
def dot(first, second, PARTS: tl.constexpr):
    """Return the sum of the parts' products, not yet summed over columns."""
    found = first[0] * second[0]
    for part in tl.static_range(1, PARTS):
        found += first[part] * second[part]
    return found


@triton.jit
def plus(sums, parts, PARTS: tl.constexpr):
    """Return sums to which the parts are added."""
    found = no_parts()
    for part in tl.static_range(PARTS):
        found += (sums[part] + parts[part],)
    return found


@triton.jit
def plus_products(sums, first, second, PARTS: tl.constexpr):
    """Return sums to which the parts' products are added."""
    found = no_parts()
    for part in tl.static_range(PARTS):
        found += (sums[part] + first[part] * second[part],)
    return found


@triton.jit
def store_sums(sums_ptr, matrix, parts, num_columns, COLUMNS: tl.constexpr, PARTS: tl.constexpr):
    """Write the sums over a tile's rows into this program's row of one of several matrices."""
    row = (matrix * tl.num_programs(0) + tl.program_id(0)).to(tl.int64)
    for part in tl.static_range(PARTS):
        column = part * COLUMNS + tl.arange(0, COLUMNS)
        tl.store(sums_ptr + row * num_columns + column, tl.sum(parts[part], axis=0), mask=column < num_columns)
