"""A page of feedback names every exercise, and no hidden check that its student could not know of."""

from autograder.exercises import find, of_assignment
from demo.outcome import _faults

NAME = "04_fx_capture"
HIDDEN = next(c for c in find("04_read_a_graph", hidden=True).checks if c.hidden and c.name != c.category)
PAGE = " ".join(of_assignment(NAME))


def test_a_page_without_an_exercise_is_named() -> None:
    assert list(_faults(PAGE, NAME, "")) == []
    assert list(_faults(PAGE.replace("04_read_a_graph", ""), NAME, "")) == ["lacks 04_read_a_graph"]


def test_a_page_that_shows_a_hidden_check_is_named_unless_its_student_wrote_that() -> None:
    page = f"{PAGE} {HIDDEN.name}"
    assert list(_faults(page, NAME, "")) == [f"shows the hidden check {HIDDEN.name!r}"]
    assert list(_faults(page, NAME, f"# {HIDDEN.name}")) == []
