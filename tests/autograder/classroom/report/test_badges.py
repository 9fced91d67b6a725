"""Reports show the badge of a kernel and how it was measured, and ask a person to look at one beyond belief."""

import csv
import io
from dataclasses import replace

from autograder.classroom.report import checks_csv, class_html, summarise, this_environment
from autograder.host.clock.contest import NEEDS_GPU
from autograder.host.records import Badge, KernelRecord, SubmissionRecord
from autograder.host.report import exercise_html, exercise_text
from tests.autograder.classroom.report.sample_class import attention_exercise, submission

MEASURED = KernelRecord(True, "Badges by share.", Badge.SILVER, 0.79, 0.78, 0.8, 201_326_592, 85.0, 67.0)
TOO_GOOD = replace(MEASURED, badge=None, share=1.2, flags=("faster than memory allows: look",))
NOT_HERE = KernelRecord(False, NEEDS_GPU)
UNDECIDED = replace(MEASURED, assessed=False, badge=None)
MISSED = replace(MEASURED, badge=None, share=0.4)
FAILED = KernelRecord(True, "Triton does not compile `kernel`.")
HEADLINES = {
    MEASURED: "silver, at 79 % of the bandwidth of a copy (95 %: 78 to 80 %)",
    MISSED: "none, at 40 % of the bandwidth of a copy",
    UNDECIDED: "not decided, at 79 %",
    FAILED: "none",
    NOT_HERE: "not assessed here",
}


def test_the_report_of_an_exercise_says_which_badge_and_why() -> None:
    for badge, headline in HEADLINES.items():
        record = replace(attention_exercise(6), badge=badge)
        for text in (exercise_html(record), exercise_text(record).replace("badge, no points: ", "<strong>")):
            assert f"<strong>{headline}" in text
            assert badge.reason.replace("`", "") in text.replace("`", "").replace("<code>", "").replace("</code>", "")
            assert ("One call has to move" in text) == bool(badge.share)
    assert "badge" not in exercise_text(attention_exercise(6))


def test_the_class_report_shows_badges_and_a_person_is_asked_to_look_at_one_beyond_belief() -> None:
    plain = attention_exercise(6)
    badges = {"a": MEASURED, "b": TOO_GOOD, "c": NOT_HERE, "d": None}
    records = [submission(name, replace(plain, badge=badge)) for name, badge in badges.items()]
    summary = summarise(records)
    rows = [*csv.DictReader(io.StringIO(checks_csv(summary)))]
    assert {row["student"]: row["badge"] for row in rows} == {"a": "silver", "b": "", "c": "", "d": ""}
    page = class_html(summary, title="t", environment=this_environment())
    assert page.count("silver badge") == 2  # by name, by points
    assert page.count("faster than memory allows: look") >= 1
    assert {student.points for student in summary.students} == {plain.points}
    assert [SubmissionRecord.from_json(each.to_json()) for each in records] == records
