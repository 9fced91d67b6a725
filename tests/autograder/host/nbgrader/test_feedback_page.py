"""The templates of a page of feedback are compiled once in a process, and again when one has changed."""

import jinja2
import pytest
from nbformat.v4 import new_code_cell, new_notebook

from autograder.host.nbgrader.course import open_course
from autograder.host.nbgrader.feedback_page import CompiledTemplates, FeedbackExporter


@pytest.fixture
def compiled(monkeypatch: pytest.MonkeyPatch) -> list[str | None]:
    """Write down the name of every template that is compiled."""
    names: list[str | None] = []
    compile_ = jinja2.Environment.compile

    def noted(self, source, name=None, *rest, **named):
        names.append(name)
        return compile_(self, source, name, *rest, **named)

    monkeypatch.setattr(jinja2.Environment, "compile", noted)
    return names


def page(text: str) -> str:
    return str(FeedbackExporter().from_notebook_node(new_notebook(cells=[new_code_cell(text, id="a")]))[0])


def test_the_second_page_compiles_nothing_and_shows_what_is_its_own(compiled: list[str | None]) -> None:
    first = page("print('for ada')")
    compiled.clear()

    second = page("print('for bob')")
    assert compiled == []
    assert "for bob" in second
    assert "for ada" not in second
    assert second.replace("for bob", "for ada") == first


def test_a_template_that_has_changed_is_compiled_again() -> None:
    texts, cache = {"page": "old"}, CompiledTemplates()

    def rendered() -> str:
        return jinja2.Environment(loader=jinja2.DictLoader(texts), bytecode_cache=cache).get_template("page").render()

    assert rendered() == "old"
    texts["page"] = "new"
    assert rendered() == "new"


def test_nbgrader_makes_feedback_so(tmp_path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COURSE_WORK", str(tmp_path))
    named = open_course().api.config.GenerateFeedback.exporter_class
    assert named == f"{FeedbackExporter.__module__}.{FeedbackExporter.__name__}"
