"""The class report names what `zip_collect` left out, among all that needs a person."""

from autograder.classroom.nbgrader.course import Course
from autograder.classroom.nbgrader.left_out import LeftOut, keep_left_out
from tests.autograder.classroom.nbgrader.small_course import base, course, graded, place
from tests.autograder.classroom.nbgrader.test_cycle import NAME

__all__ = ["base", "course", "place"]  # fixtures


def test_the_class_report_names_what_zip_collect_left_out(course: Course) -> None:
    work = course.journal.parent
    lost = LeftOut(NAME, "<b>Eve</b>_9_assignsubmission_file_/answer.docx", "<i>Eve</i> handed in no notebook")
    keep_left_out(work, NAME, [lost], [])

    done = graded(course)

    page = done.page.read_text()
    assert "&lt;b&gt;Eve&lt;/b&gt;_9_assignsubmission_file_/answer.docx" in page
    assert "left it out: &lt;i&gt;Eve&lt;/i&gt; handed in no notebook. Copy it by hand into" in page
    assert "[decide]" in next(line for line in done.text.splitlines() if "answer.docx" in line)
    assert len(done.records) == 2
    keep_left_out(work, NAME, [], [lost.path])
    assert "answer.docx" not in graded(course).text
