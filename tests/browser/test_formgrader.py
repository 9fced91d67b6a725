"""A person reads work logs in Formgrader, in Chromium, and the points reach gradebook, marks, feedback and report."""

import asyncio
import json
import re

import pytest

from autograder.host.sandbox import open_sandbox
from demo.capstone import ASSIGNMENT, GIVEN, LOG, ROLES, capstone_class, run_capstone
from tests.architecture.source_tree import ROOT
from tests.browser.formgrader import formgrader, read_class
from tests.browser.needs import needs_chromium
from tests.drawn import some

pytestmark = pytest.mark.browser
COMMENT = "Say how many launches each end saves."
TEXTS = ('"evidence": "', '"hypothesis": "', '"threat": "')


def rubric() -> list[str]:
    """The words of the rubric as it is released, in their order."""
    notebook = json.loads((ROOT / "notebooks" / ASSIGNMENT / f"{ASSIGNMENT}.ipynb").read_text(encoding="utf-8"))
    (cell,) = (cell for cell in notebook["cells"] if cell["id"] == "work-log-rubric")
    return re.findall(r"\w+", "".join(cell["source"]))


@pytest.mark.slow
@needs_chromium
@pytest.mark.usefixtures("quick_gradebooks")
def test_points_given_on_formgraders_page_reach_gradebook_marks_feedback_and_report(tmp_path, monkeypatch):
    """Some of the class, one of whom wrote another rubric; WHOLE=1 grades all, and reads five logs."""
    for name in ("COURSE_WORK", "COURSE_EXCHANGE"):  # which the class sets, and which are to be as they were
        monkeypatch.setenv(name, str(tmp_path / "work"))
    roles = {"log_only", "unchanged", *some([*ROLES], 1, name="formgrader")}
    shown = {}

    def give(course, members):
        points = {m.name: GIVEN[m.name] for m in members if m.name in GIVEN}
        with formgrader(tmp_path / "work") as address:
            shown.update(asyncio.run(read_class(address, ASSIGNMENT, LOG, points, COMMENT, tmp_path / "pictures")))

    done = run_capstone(tmp_path / "work", sandbox=open_sandbox(), roles=roles, give=give)

    assert done.differences == ()
    members = {m.name: m for m in capstone_class(roles)}
    assert shown.keys() == GIVEN.keys() & members.keys()
    for name, (before, after) in shown.items():
        given = f"{GIVEN[name]:g}"
        assert (before.most, before.score, before.comment, before.waits) == ("/ 24.0", "", "", True)
        assert (float(after.score), after.comment, after.waits) == (GIVEN[name], COMMENT, False)
        assert all(text in before.answer for text in TEXTS if text in members[name].answers[LOG][0])
        assert " ".join(rubric()) in " ".join(re.findall(r"\w+", before.before)), f"no rubric above the log of {name}"
        page = (tmp_path / "work" / "feedback" / name / ASSIGNMENT / f"{ASSIGNMENT}.html").read_text(encoding="utf-8")
        assert COMMENT in page
        assert f"{given}" in page
