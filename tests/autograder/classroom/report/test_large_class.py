"""The report of a term: small enough for a mail, and by notebook before anything else."""

import re
from dataclasses import replace

from autograder.classroom.report import class_html, class_text, summarise, this_environment
from autograder.classroom.report.attention import Attention, Urgency, attention, grouped
from autograder.classroom.report.items import MOST_MISCONCEPTIONS
from autograder.host.records import SubmissionRecord
from tests.autograder.classroom.report.large_class import NAMES, NOTEBOOKS, STUDENTS, large_class
from tests.autograder.classroom.report.sample_class import attention_exercise, submission


def test_the_page_of_60_students_and_18_notebooks_is_below_a_megabyte_and_begins_with_notebooks() -> None:
    records, absent = large_class()
    summary = summarise(records, absent=absent, names=NAMES)
    page = class_html(summary, title="Class report", environment=this_environment())

    assert len(page.encode()) < 1_000_000
    headings = re.findall(r"<h2>([^<]*)</h2>", page)
    assert headings[:3] == ["What needs a person", "Notebooks", "Students"]
    assert len(summary.students) == STUDENTS
    assert page.count("First7 Familyname7</a>") == 2  # by name, and by points
    assert len(summary.misconceptions) == NOTEBOOKS * MOST_MISCONCEPTIONS
    text = class_text(summary, title="Class report", environment=this_environment())
    assert max(len(line) for line in text.splitlines()) < 200


def test_who_handed_in_nothing_is_in_the_class_with_a_row_and_without_a_mark() -> None:
    handed_in = [submission("ada", attention_exercise(6))]
    summary = summarise(handed_in, absent={"01_transformer": ["ben"]}, names={"ben": "Ben Example"})

    assert [(s.name, s.shown, s.has_mark) for s in summary.students] == [
        ("ada", "ada", True),
        ("ben", "Ben Example", False),
    ]
    assert (summary.mean_percent, summary.without_mark) == (100.0, 1)
    (notebook,) = summary.notebooks
    assert (notebook.handed_in, notebook.absent, notebook.mean_percent) == (1, ("ben",), 100.0)
    page = class_html(summary, title="t", environment=this_environment())
    assert "Ben Example" in page
    assert "ben.html" not in page  # there is nothing to show


def test_a_student_fell_where_a_notebook_lies_far_below_the_others() -> None:
    def of(number: int, right: int) -> SubmissionRecord:
        return replace(submission("ada", attention_exercise(right)), assignment=f"0{number}_x")

    steady = summarise([of(1, 5), of(2, 5), of(3, 4)])
    fell = summarise([of(1, 5), of(2, 5), of(3, 2)])
    of_two = summarise([of(1, 6), of(2, 0)])
    assert [notebook.fell for notebook in steady.notebooks] == [(), (), ()]
    assert [notebook.fell for notebook in fell.notebooks] == [(), (), ("ada",)]
    assert [notebook.fell for notebook in of_two.notebooks] == [(), ()]


def test_repairs_of_the_same_kind_are_one_sentence() -> None:
    deleted = [f"The cell 04_{name}_check had been deleted; it was put back." for name in ("a", "b", "c")]
    (entry,) = attention([submission("ada", attention_exercise(6), notes=(*deleted, "It was named twice."))])
    assert entry.sentence == (
        "The cell 04_a_check had been deleted; it was put back. The same of 2 more: 04_b_check, 04_c_check. "
        "It was named twice."
    )


def test_what_several_students_have_in_common_is_one_line_with_their_names() -> None:
    entries = [Attention(Urgency.MUST, name, "17_work_log", "24 points are for a person.") for name in ("ada", "ben")]
    other = Attention(Urgency.MUST, "ada", "05_x", "24 points are for a person.")
    assert [one.students for one in grouped([*entries, other])] == [("ada", "ben"), ("ada",)]
