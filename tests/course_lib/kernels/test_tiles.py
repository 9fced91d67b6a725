"""How a matrix is shared out among the programs of a kernel, for a GPU that is not here."""

from types import SimpleNamespace
from typing import Any

import pytest
import torch

from course_lib.kernels.triton.tiles import ALONE_PER_LANE, parted_tiles, persistent_programs, tiles_of


@pytest.mark.parametrize(
    ("shape", "rows", "columns", "warps", "count"),
    [
        ((65536, 768), 1, 1024, 4, 65536),
        ((65536, 1024), 1, 1024, 4, 65536),
        ((10, 1025), 1, 2048, 8, 10),
        ((10, 8192), 1, 8192, 16, 10),
        ((100, 3), 256, 4, 4, 1),
        ((257, 1), 256, 4, 4, 2),
    ],
)
def test_tiles_hold_whole_rows_and_cover_the_matrix(
    shape: tuple[int, int], rows: int, columns: int, warps: int, count: int
) -> None:
    tiles = tiles_of(torch.empty(shape, device="meta"))
    assert (tiles.rows, tiles.columns, tiles.warps, tiles.count) == (rows, columns, warps, count)


@pytest.mark.parametrize(("registers", "programs"), [(64, 132 * 8), (128, 132 * 4), (2000, 132)])
def test_as_many_programs_start_as_their_registers_let_run_at_a_time(
    monkeypatch: pytest.MonkeyPatch, registers: int, programs: int
) -> None:
    monkeypatch.setattr(torch.cuda, "get_device_properties", lambda device: SimpleNamespace(multi_processor_count=132))
    matrix: Any = SimpleNamespace(is_cuda=True, device="cuda", shape=(65536, 768))
    assert persistent_programs(matrix, tiles_of(matrix), registers=registers) == programs
    few: Any = SimpleNamespace(is_cuda=True, device="cuda", shape=(5, 768))
    assert persistent_programs(few, tiles_of(few), registers=registers) == 5


@pytest.mark.parametrize(
    ("columns", "most", "rows", "width", "parts", "warps"),
    [
        (768, 32, 1, 256, 3, 1),
        (1024, 24, 1, 256, 4, 1),
        (8192, 32, 1, 2048, 4, 8),
        (8192, 24, 1, 4096, 2, 16),
        (3, 32, 64, 4, 1, 1),
    ],
)
def test_as_few_warps_share_a_row_as_registers_allow(
    columns: int, most: int, rows: int, width: int, parts: int, warps: int
) -> None:
    tiles = parted_tiles(torch.empty(100, columns, dtype=torch.bfloat16, device="meta"), most_per_lane=most)
    assert (tiles.rows, tiles.columns, tiles.parts, tiles.warps) == (rows, width, parts, warps)
    assert tiles.per_lane <= (ALONE_PER_LANE if warps == 1 else most)
