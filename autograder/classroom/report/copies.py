"""Show functions that are copies of a library's, each beside the text that it copies."""

from collections.abc import Iterator

from autograder.classroom.report.summary import Student
from autograder.host.artifacts.copied_functions import SHOWN
from autograder.host.report.safe_text import Html, element, escaped, joined, one_line


def copies(student: Student) -> Iterator[Html]:
    """Yield a heading and both texts for each copied function of a student."""
    for record in (each for each in student.exercises if each is not None):
        for copy in record.copies:
            heading = element("h3", " · ".join(map(one_line, (record.id, copy.function, copy.original))))
            texts = (element("div", element("pre", _shown(text))) for text in (copy.text, copy.original_text))
            yield joined(heading, element("div", *texts, class_="pair"))


def _shown(text: str) -> Html:
    return Html(escaped(text, limit=SHOWN))
