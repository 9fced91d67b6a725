"""The measured speed by size: ratios, the sizes between which they cross 1, and the same in words."""

import re
from itertools import pairwise

import pytest
import torch

from course_lib.errors import ProfilingError
from course_lib.profiling import speed_by_size
from course_lib.profiling.speed_by_size import Point, SpeedBySize


def shown(**ratios: tuple[float, ...]) -> SpeedBySize:
    """Return ratios at the sizes 1, 10, 100 with intervals of 5 % on both sides."""
    points = {
        name: tuple(
            Point(size, r, 0.95 * r, 1.05 * r, 10.0, 10.0 * r) for size, r in zip((1, 10, 100), each, strict=True)
        )
        for name, each in ratios.items()
    }
    return SpeedBySize("rows", points, "cpu")


@pytest.mark.parametrize(
    ("ratios", "words"),
    [
        ((0.5, 0.8, 2.0), "fused becomes faster between 10 and 100 rows"),
        ((0.5, 1.0, 2.0), "fused becomes faster between 1 and 100 rows"),  # undecided at 10
        ((0.5, 0.6, 1.05), "fused is not shown to be faster at any size"),
        ((1.2, 1.5, 2.0), "fused is not shown to be slower at any size"),
        ((0.5, 2.0, 0.5), "fused crosses 1 more than once"),
    ],
)
def test_the_crossing_is_said_by_intervals(ratios, words):
    by_size = shown(fused=ratios)
    assert by_size.crossing("fused") == words
    assert f"{words} (cpu)." in str(by_size)
    assert f"<p>{words} (cpu).</p>" in by_size._repr_html_()


def test_the_picture_escapes_names_and_has_the_table_as_its_text():
    page = shown(**{"<b>": (0.5, 0.8, 2.0)})._repr_html_()
    assert "<b>" not in page
    assert 'alt="version' in page
    assert "0.76 to 0.84" in page


def test_a_version_that_does_less_is_measured_as_faster():
    inputs = {size: (torch.ones(size),) for size in (20_000, 40_000)}
    by_size = speed_by_size({"once": torch.exp}, lambda x: x.exp().exp().exp().exp(), "numbers", inputs, budget_s=0.05)
    assert [point.size for point in by_size.points["once"]] == [20_000, 40_000]
    assert all(point.ratio > 1.5 for point in by_size.points["once"])


def test_nothing_to_measure_is_an_error():
    with pytest.raises(ProfilingError, match="at least one version"):
        speed_by_size({}, torch.exp, "rows", {1: (torch.ones(1),)})


@pytest.mark.parametrize("most", [1.1, 6.0, 600.0])
def test_the_axis_labels_1_and_no_two_labels_overlap(most):
    drawn = shown(fused=(0.5, 0.8, most))._svg()
    places = sorted(float(y) for y in re.findall(r'y="([\d.]+)" text-anchor="end"', drawn))
    assert ">1 eager<" in drawn
    assert len(places) >= 3
    assert all(below - above > 12 for above, below in pairwise(places))
