"""Write the page of similar answers: each pair of students, and both texts of each exercise next to each other."""

from collections.abc import Iterator

from autograder.classroom.report.alike import AlikeAnswers
from autograder.classroom.report.parts import document, section, short
from autograder.classroom.report.summary import ClassSummary
from autograder.host.artifacts.copied_functions import SHOWN
from autograder.host.report.safe_text import Html, element, escaped, joined
from autograder.host.report.wording import percent

SIMILAR = "similar.html"
_WHAT = (
    "Compared are instructions, numbers, and the names of what an answer uses of others; names that it chose, comments "
    "and layout are not. What is short, or near a known right answer, is left out. Two people can still have written "
    "the same: a person decides, and no mark depends on it."
)


def similar_html(summary: ClassSummary, *, title: str) -> str:
    """Return the page; an instructor reads it, since it shows answers."""
    names = {student.name: student.shown for student in summary.students}
    pairs = (
        section(" and ".join(short(names.get(s, s)) for s in pair.students), joined(*map(_exercise, pair.answers)))
        for pair in summary.alike
    )
    return document(
        f"Similar answers · {title}",
        (
            element("p", element("a", title, href="index.html")),
            element("h1", "Similar answers"),
            element("p", _WHAT, class_="quiet"),
            *(part for pair in pairs for part in pair),
        ),
    )


def _exercise(alike: AlikeAnswers) -> Html:
    heading = element("h3", f"{alike.exercise} · {percent(alike.share, 1)} % alike")
    return joined(heading, element("div", *_texts(alike), class_="pair"))


def _texts(alike: AlikeAnswers) -> Iterator[Html]:
    for text in alike.texts:
        shown = text.encode("utf-8", "replace").decode()
        yield element("div", element("pre", Html(escaped(shown, limit=SHOWN))))
