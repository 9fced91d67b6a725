"""Each student has a page of their own marks over the term, and nothing of anybody else."""

import re

import pytest
from nbgrader.api import Gradebook

from autograder.classroom.nbgrader.course import Course, quiet_additions
from autograder.classroom.nbgrader.extensions import extend
from autograder.classroom.nbgrader.quarantine import SECRET
from autograder.classroom.report.own_marks import NotebookMarks, all_marks, marks_html
from autograder.exercises import find, of_assignment
from tests.autograder.classroom.nbgrader.changed_settings import with_settings
from tests.autograder.classroom.nbgrader.small_course import base, course, graded, place
from tests.autograder.classroom.nbgrader.test_cycle import ANSWER, NAME, gradebook_of
from tests.autograder.classroom.pages.page_scan import loaded_or_run, policy

__all__ = ["base", "course", "place"]  # fixtures
MOST = sum(find(name).points for name in of_assignment(NAME))
LATER, PAST = "00_start_here", "02_measuring"


def page_of(course: Course, student: str) -> str:
    return (course.feedback / student / "marks.html").read_text()


def lines(page: str) -> dict[str, str]:
    """Return the text of each line of the table, by its notebook: the points, then the remarks."""
    found = re.findall(r"<tr><td[^>]*>(.*?)</td><td[^>]*>(.*?)</td></tr>", page)
    texts = [re.sub(r"<[^>]*>", "|", f"{name}|{points}").split("|") for name, points in found]
    cells = [[text for text in row if text] for row in texts]
    return {name: " | ".join([points, *remarks]) for name, *remarks, points in cells}


def enter(gradebook: Gradebook, notebook: str, student: str, due: str | None = None) -> None:
    gradebook.add_assignment(notebook, duedate=due)
    gradebook.add_notebook(notebook, notebook)
    gradebook.add_grade_cell(f"{notebook}_check", notebook, notebook, max_score=8, cell_type="code")
    with quiet_additions():
        gradebook.add_submission(notebook, student)
    grade = gradebook.find_grade(f"{notebook}_check", notebook, notebook, student)
    grade.manual_score, grade.needs_manual_grade = 7.25, False
    gradebook.db.commit()


def test_a_page_has_the_students_marks_notebook_by_notebook(course: Course) -> None:
    with gradebook_of(course) as gradebook:
        gradebook.add_student("cleo", first_name="Cleo", last_name="Quill")
        enter(gradebook, LATER, "cleo", "2999-01-15 12:00:00 UTC")
        enter(gradebook, PAST, "cleo", "2020-01-15 12:00:00 UTC")
        submission = gradebook.find_submission(PAST, "cleo")
        submission.notebooks[0].late_submission_penalty = 1.5
        gradebook.db.commit()
    graded(course)

    cleo, ada = page_of(course, "cleo"), page_of(course, "ada")
    assert f"Cleo Quill · 13 of {16 + MOST:g} points, " in cleo
    assert lines(cleo) == {
        LATER: "7.25 of 8 · 90 %",
        PAST: "5.75 of 8 · 71 % | 1.5 points were deducted for lateness",
        NAME: f"0 of {MOST:g} · 0 % | not handed in",
    }
    own = find(ANSWER).points
    assert lines(ada)[LATER] == "– of 8 | open until Tuesday, 15 January 2999, 12:00 (UTC)"
    assert lines(ada)[PAST] == "0 of 8 · 0 % | not handed in"
    assert lines(ada)[NAME].startswith(f"{own:g} of {MOST:g}")
    assert f'<a href="{NAME}/{NAME}.html">{NAME}</a>' in ada
    assert (course.feedback / "ada" / NAME / f"{NAME}.html").is_file()
    assert "<a href" not in cleo


def test_a_page_says_that_a_notebook_is_open_to_a_student_with_an_extension(course: Course) -> None:
    with gradebook_of(course) as gradebook:
        gradebook.add_student("cleo")
        gradebook.add_student("dan")
    extend(course, "cleo", NAME, until="2999-01-15 12:00 UTC")
    graded(course)
    assert lines(page_of(course, "cleo"))[NAME] == f"– of {MOST:g} | open until Tuesday, 15 January 2999, 12:00 (UTC)"
    assert lines(page_of(course, "dan"))[NAME] == f"0 of {MOST:g} · 0 % | not handed in"


def test_a_page_says_what_a_person_has_not_read_yet(course: Course) -> None:
    with gradebook_of(course) as gradebook:
        enter(gradebook, LATER, "ada")
        gradebook.find_grade(f"{LATER}_check", LATER, LATER, "ada").needs_manual_grade = True
        gradebook.db.commit()
    graded(course)
    assert lines(page_of(course, "ada"))[LATER] == "7.25 of 8 · 90 % | a part is not read by a person yet"


def test_a_page_says_what_is_left_out_of_the_marks_and_what_has_none_yet(course: Course) -> None:
    with gradebook_of(course) as gradebook:
        enter(gradebook, LATER, "ada")
        gradebook.find_grade(f"{LATER}_check", LATER, LATER, "ada").manual_score = None
        gradebook.db.commit()
    graded(with_settings(course, f'dropped = ["{ANSWER}"]'))
    own = find(ANSWER).points
    assert f"0 of {MOST - own:g} · 0 % | {ANSWER}: not counted" in lines(page_of(course, "ada"))[NAME]
    assert lines(page_of(course, "ada"))[LATER] == "– of 8 | handed in, without a mark so far"


def test_a_page_has_only_the_notebooks_of_the_course(course: Course) -> None:
    with gradebook_of(course) as gradebook:
        enter(gradebook, LATER, "ada")
    graded(with_settings(course, f'notebooks = ["{NAME}"]'))
    assert list(lines(page_of(course, "ada"))) == [NAME]


def test_no_name_and_no_mark_of_another_student_is_on_a_page(course: Course) -> None:
    with gradebook_of(course) as gradebook:
        gradebook.add_student("cleo", first_name="Cleo", last_name="Quill")
        enter(gradebook, LATER, "cleo")
        gradebook.find_grade(f"{LATER}_check", LATER, LATER, "cleo").manual_score = 6.53
        gradebook.db.commit()
    graded(course)
    secrets = {"ada": ("ada",), "bob": ("bob",), "cleo": ("Cleo", "Quill", "6.53")}
    for student in secrets:
        page = page_of(course, student)
        others = [text for other, texts in secrets.items() if other != student for text in texts]
        assert [text for text in others if text in page] == []
        assert [text for text in secrets[student] if text not in page] == []


def test_a_page_runs_nothing_loads_nothing_and_is_small_for_a_whole_term() -> None:
    notes = ("1.25 points were deducted for lateness", "you had time until Friday, 18 January 2030, 12:00 (UTC)")
    rows = [NotebookMarks(f"{i:02d}_a_name_of_a_notebook", 12.34, 56.78, True, notes) for i in range(18)]
    page = marks_html("<script>alert(1)</script>", rows, [row.notebook for row in rows])

    assert [one for one in loaded_or_run(page) if not one.startswith("a href=")] == []
    assert policy(page).startswith("default-src 'none'")
    assert "<script" not in page
    assert len(page.encode()) < 60_000
    for words in ("prefers-color-scheme: dark", "@media print", "width=device-width"):
        assert words in page


def test_released_feedback_has_the_marks_of_all_notebooks_with_released_feedback(course: Course) -> None:
    with gradebook_of(course) as gradebook:
        enter(gradebook, LATER, "ada")
        gradebook.find_grade(f"{LATER}_check", LATER, LATER, "ada").manual_score = 6.53
        gradebook.db.commit()
    for student in ("ada", "bob"):
        (course.feedback / student / NAME / SECRET).write_text(f"secret of {student}")
    course.do("release_feedback", NAME)

    pages = [path.read_text() for path in course.journal.with_name("exchange").rglob("feedback/*.html")]
    tables = [page[page.index('<details id="term">') : page.index("</details>")] for page in pages]
    own = find(ANSWER).points
    assert sorted(lines(table)[NAME].split(" ·")[0] for table in tables) == [f"0 of {MOST:g}", f"{own:g} of {MOST:g}"]
    assert not any(LATER in table for table in tables)  # its feedback was not released
    assert "All your marks so far" in tables[0]


@pytest.mark.parametrize("rows", [[], [NotebookMarks(NAME, 0.0, 8.0, False, ("handed in, without a mark so far",))]])
def test_without_marks_no_sum_is_shown(rows: list[NotebookMarks]) -> None:
    assert "no marks so far" in marks_html("Ada", rows, ())
    assert "All your marks so far: no marks so far" in all_marks(rows)
