"""The experiment counts what is wrong, bounds it, and fails where too much is."""

import json

import pytest

from benchmarks.timing_decisions import ABOVE, BELOW, CUT, Cell, facts, summary, table, upper_bound, write
from course_lib.timing import Verdict


def cells(*, wrong_passes: int, wrong_fails: int) -> list[Cell]:
    """Return a hundred verdicts on each side of the cut, so many of them wrong."""
    below, above = Cell("idle", "compute", 1.0), Cell("idle", "compute", 1.3)
    below.verdicts.update({Verdict.PASS: wrong_passes, Verdict.FAIL: 99 - wrong_passes, Verdict.INCONCLUSIVE: 1})
    above.verdicts.update({Verdict.FAIL: wrong_fails, Verdict.PASS: 98 - wrong_fails, Verdict.ENVIRONMENT: 2})
    for cell in (below, above):
        cell.pairs, cell.elapsed_s, cell.errors = [9], [0.02], [-0.01]
    return [below, above]


def test_every_true_ratio_lies_4_percent_or_more_from_the_cut():
    assert all(baseline / candidate <= CUT / 1.04 for candidate, baseline in BELOW)
    assert all(baseline / candidate >= CUT * 1.04 for candidate, baseline in ABOVE)


@pytest.mark.parametrize(
    ("wrong_passes", "wrong_fails", "kept"), [(0, 0, True), (1, 1, True), (2, 0, False), (0, 2, False)]
)
def test_more_than_one_percent_wrong_on_either_side_fails(wrong_passes, wrong_fails, kept):
    told, found = summary(cells(wrong_passes=wrong_passes, wrong_fails=wrong_fails))

    assert found is kept
    assert f"{wrong_passes} of 100 wrongly passed" in told
    assert f"{wrong_fails} of 100 wrongly failed" in told
    assert "2 undecided" in told


@pytest.mark.parametrize(
    ("wrong", "trials", "bound"),
    [(0, 100, 0.0295), (0, 300, 0.00994), (1, 100, 0.0466), (5, 100, 0.1023), (2, 2, 1.0)],  # tables of the binomial
)
def test_the_bound_is_that_of_clopper_and_pearson(wrong, trials, bound):
    assert upper_bound(wrong, trials) == pytest.approx(bound, abs=2e-4)


def test_the_table_has_a_line_for_each_cell_and_the_record_holds_it(tmp_path):
    some = cells(wrong_passes=1, wrong_fails=0)
    record = json.loads(write("timing-decisions", facts(some), tmp_path).read_text("utf-8"))

    assert len(table(some).splitlines()) == 3
    assert [cell["wrong"] for cell in record["cells"]] == ["1", "0"]
    assert record["machine"]["cores"] >= 1
