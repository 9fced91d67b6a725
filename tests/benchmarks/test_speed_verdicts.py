"""The experiment on the judge's clock asks real workers, counts what is wrong and fails where anything is."""

import json
import sys

import pytest

from autograder.host.sandbox import open_sandbox
from benchmarks.grading import speed_verdicts
from benchmarks.grading.speed_verdicts import BASELINE, CANDIDATE, Asked, Cell, facts, judge_known, known, table
from benchmarks.timing_decisions import write


def cells(verdict: str) -> list[Cell]:
    """One verdict on each question."""
    made = [Cell("idle", "itself", "within", 0.5), Cell("idle", "asked 1.2", "pass", 0.5)]
    for cell, found in zip(made, ("within", verdict), strict=True):
        cell.verdicts[found] += 1
        cell.ratios, cell.pairs, cell.elapsed_s = [1.5], [9], [1.0]
    return made


def test_a_real_worker_is_judged_on_a_known_ratio():
    passing, full = Cell("idle", "asked 1.2", "pass", 0.0), Cell("idle", "asked 2.0", "fail", 0.0)
    judge_known(known(open_sandbox(), CANDIDATE, BASELINE), passing, full)

    assert (Asked(10.0).passing, Asked(10.0).full) == (1.2, 2.0)
    assert passing.verdicts["fail"] == full.verdicts["pass"] == 0  # undecided it may be, on a machine that is busy
    assert passing.ratios[0] == pytest.approx(BASELINE / CANDIDATE, rel=0.25)


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
