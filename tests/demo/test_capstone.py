"""Made-up hand-ins of the capstone in the batch: routes, cheap and wrong passes, logs that a person reads."""

from collections import Counter
from dataclasses import replace

import pytest

from autograder.exercises import find, of_assignment
from autograder.host.sandbox import open_sandbox
from demo.capstone import ASSIGNMENT, GIVEN, LOG, ROLES, STEP, capstone_class, run_capstone, wrong_sums
from tests.drawn import some

ALWAYS = ("route_schedule", "cheap_and_wrong", "log_only", "hostile_log")


def test_the_class_has_four_routes_with_all_points_and_wrong_ones_without_any():
    members = capstone_class()
    most = find(STEP, hidden=True).points
    assert len(members) == 21
    marks = {m.name: m.marks[STEP] for m in members if STEP in m.marks}
    routes = {m.answers[STEP] for m in members if m.marks.get(STEP) == most}
    assert len(routes) == 4
    assert {"unchanged", "cheap_and_wrong", "dropout_gone"} <= {name for name, points in marks.items() if not points}
    assert Counter(points for points in marks.values() if 0 < points < most)
    full = next(m for m in members if m.name == "route_fx_pass")
    assert sum(full.marks.values()) + GIVEN["route_fx_pass"] == 125
    assert sum(find(e, hidden=True).points + find(e).by_hand for e in of_assignment(ASSIGNMENT)) == 125


@pytest.mark.slow
@pytest.mark.usefixtures("quick_gradebooks")
def test_every_mark_is_the_machines_and_the_persons(tmp_path, monkeypatch):
    """A part of the class, drawn again in each run; WHOLE=1 grades all."""
    for name in ("COURSE_WORK", "COURSE_EXCHANGE"):  # which it sets, and which are to be as they were
        monkeypatch.setenv(name, str(tmp_path / "work"))
    others = some([role for role in ROLES if role not in ALWAYS], 2, name="capstone")
    roles = (*ALWAYS, *others)

    done = run_capstone(tmp_path / "work", sandbox=open_sandbox(), roles=roles)

    assert done.differences == ()
    decide = [line for line in done.graded.text.splitlines() if "[decide]" in line]
    assert "route_schedule" not in "".join(decide)
    assert [one for one in decide if "cheap_and_wrong" in one and "17_work_log: 24 points are for a person" in one]
    page = tmp_path / "work" / "feedback" / "log_only" / ASSIGNMENT / f"{ASSIGNMENT}.html"
    assert f"{GIVEN['log_only']:g}" in page.read_text()
    stated = [replace(m, marks={**m.marks, LOG: 1.0}) for m in capstone_class(["log_only"])]
    assert wrong_sums(stated, done.graded) == [
        "log_only: 18 points in the CSV; 13 are right.",
        "log_only: 18 points in the report; 13 are right.",
    ]
