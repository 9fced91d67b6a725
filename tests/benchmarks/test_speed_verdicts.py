"""The experiment on the judge's clock asks real workers, counts what is wrong and fails where anything is."""

import json
import sys

import pytest

from autograder.host.sandbox import open_sandbox
from benchmarks.grading import speed_verdicts
from benchmarks.grading.speed_verdicts import (
    CANDIDATE,
    FAR,
    Asked,
    Cell,
    facts,
    failures,
    judge,
    known,
    near,
    table,
)
from benchmarks.timing_decisions import write
from course_lib.timing.decisions import GUARD


def cells(verdict: str) -> list[Cell]:
    """One verdict on each question."""
    made = [
        Cell("idle", "itself", "within", 0.5, is_strict=True),
        Cell("idle", "asked 1.2", "pass", 0.5, is_strict=True),
    ]
    for cell, found in zip(made, ("within", verdict), strict=True):
        cell.verdicts[found] += 1
        cell.ratios, cell.pairs, cell.elapsed_s = [1.5], [9], [1.0]
    return made


def many(wanted: str, *verdicts: str, elapsed_s: float = 1.0) -> Cell:
    """Some verdicts near a cut, that wanted `wanted`."""
    cell = Cell("idle", "near", wanted, 0.5)
    for verdict in verdicts:
        cell.add(verdict, 1.5, 9, elapsed_s)
    return cell


def test_a_real_worker_is_judged_on_a_known_ratio():
    passing, full = Cell("idle", "asked 1.2", "pass", 0.0), Cell("idle", "asked 2.0", "fail", 0.0)
    judge(known(open_sandbox(), CANDIDATE // 10, int(FAR[0]) // 10, Asked(10.0)), passing, full)

    assert passing.verdicts["fail"] == full.verdicts["pass"] == 0  # undecided it may be, on a machine that is busy
    assert passing.ratios[0] == pytest.approx(FAR[0] / CANDIDATE, rel=0.25)


@pytest.mark.parametrize("baseline", speed_verdicts.BASELINES)
def test_the_true_ratio_lies_between_the_cuts_at_least_4_percent_from_both(baseline):
    asked, ratio = near(baseline), baseline / CANDIDATE
    below, above = (threshold * (1 - GUARD) for threshold in (asked.passing, asked.full))

    assert below * 1.04 < ratio < above / 1.04


def test_one_percent_on_a_side_may_be_wrong_and_no_more():
    passes = ["pass"] * 99

    assert not failures([many("pass", *passes, "fail")], quick=False)
    assert "2 of 101 wrong" in failures([many("pass", *passes, "fail", "fail")], quick=False)[0]
    assert "2 of 2 wrong" in failures([many("pass", *passes), many("fail", "pass", "pass")], quick=False)[0]


def test_a_clock_that_decides_nothing_or_takes_long_fails_too():
    undecided = many("pass", *["pass"] * 2, "inconclusive", "environment")

    assert "2 of 4 undecided" in failures([undecided], quick=False)[0]
    assert "takes 10.5 s" in failures([many("fail", "fail", elapsed_s=10.5)], quick=False)[0]


def test_the_table_has_a_line_for_each_question_and_the_record_holds_it(tmp_path):
    found = json.loads(write("speed-verdicts", facts(cells("pass")), tmp_path).read_text("utf-8"))

    assert len(table(cells("pass")).splitlines()) == 3
    assert [cell["wrong"] for cell in found["cells"]] == ["0", "0"]


@pytest.mark.parametrize(
    ("verdict", "quick", "status"),
    [("pass", False, 0), ("fail", False, 1), ("inconclusive", False, 1), ("inconclusive", True, 0), ("fail", True, 1)],
)
def test_a_wrong_verdict_is_an_exit_status(monkeypatch, capsys, verdict, quick, status):
    monkeypatch.setattr(speed_verdicts, "run", lambda *args: cells(verdict))
    monkeypatch.setattr(sys, "argv", ["speed_verdicts", "--only", "idle", *(["--quick"] if quick else [])])

    assert speed_verdicts.main() == status
    assert "asked 1.2" in capsys.readouterr().out
