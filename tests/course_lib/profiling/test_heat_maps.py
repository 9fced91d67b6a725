"""Heat maps and maps of blocks say in words what they show, and show every number."""

import re

import pytest
import torch
from torch.nn.attention.flex_attention import create_block_mask

from course_lib.errors import ProfilingError
from course_lib.profiling.heat_maps import block_kinds, block_map, heat_map


def causal(batch, head, query, key):
    return key <= query


def fills(svg: str) -> list[str]:
    return re.findall(r'<rect x="[^>]*fill="([^"]+)"', svg)


def test_a_heat_map_is_white_at_its_smallest_number_and_dark_at_its_largest():
    plot = heat_map("scores", torch.tensor([[0.0, 1.0], [4.0, 2.0]]))
    assert fills(plot.svg) == ["rgb(255,255,255)", "rgb(199,214,230)", "rgb(31,90,153)", "rgb(143,172,204)"]
    assert str(plot) == "scores: 2 query by 2 key, from 0 to 4; query 0 is largest at key 1, 1 at 0"
    assert plot.text in plot.svg


def test_a_square_holds_its_number_where_there_is_room_and_the_shades_are_explained():
    few = heat_map("few", torch.tensor([[0.0, 7.0], [0.125, 2.0]])).svg
    assert re.findall('fill="([a-z]+)" text-anchor="middle" font-size="11">([^<]+)<', few) == [
        ("black", "0"),
        ("white", "7"),
        ("black", "0.12"),
        ("black", "2"),
    ]
    assert ">white 0, dark 7<" in few
    many = heat_map("many", torch.arange(1600.0).view(40, 40) + 0.5).svg
    assert 'font-size="11"' not in many  # neither in squares nor along them
    assert re.findall(r'y="41">([0-9])<', few) == ["0", "1"]
    assert ">white 0.5, dark 1.6e+03<" in many


def test_a_matrix_of_equal_numbers_is_white():
    assert set(fills(heat_map("ones", torch.ones(2, 3)).svg)) == {"rgb(255,255,255)"}


@pytest.mark.parametrize(
    "values", [torch.ones(3), torch.ones(65, 2), torch.full((2, 2), torch.nan), torch.ones(0, 2)], ids=str
)
def test_what_cannot_be_drawn_is_named(values):
    with pytest.raises(ProfilingError, match="finite numbers in two dimensions"):
        heat_map("nothing", values)
    with pytest.raises(ProfilingError, match="got a list; it expects a tensor"):
        heat_map("nothing", values.tolist())


def test_blocks_of_a_mask_are_full_partial_or_empty():
    mask = create_block_mask(causal, None, None, 48, 48, device="cpu", BLOCK_SIZE=16)
    assert block_kinds(mask) == [
        ["partial", "empty", "empty"],
        ["full", "partial", "empty"],
        ["full", "full", "partial"],
    ]
    plot = block_map("causal", mask)
    assert "3 full, 3 partial, 3 empty; queries 0: 0 partial; queries 1: 0 full 1 partial" in str(plot)
    assert plot.svg.count("<path") == 3
    assert ">dark: full · half dark: partial · white: empty<" in plot.svg


def test_a_block_that_the_end_cuts_off_is_partial():
    mask = create_block_mask(lambda b, h, q, k: k >= 0, None, None, 40, 40, device="cpu", BLOCK_SIZE=16)
    assert [row[-1] for row in block_kinds(mask)] == ["partial"] * 3


def test_a_row_without_a_block_says_none():
    mask = create_block_mask(lambda b, h, q, k: q < 16, None, None, 32, 32, device="cpu", BLOCK_SIZE=16)
    assert "queries 1: none" in str(block_map("half", mask))
