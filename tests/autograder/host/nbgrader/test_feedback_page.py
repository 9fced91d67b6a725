"""Templates of pages of feedback are compiled once and again when one has changed; few pages need to be parsed."""

import jinja2
import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook

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


def of_text(text: str) -> str:
    return str(FeedbackExporter().from_notebook_node(new_notebook(cells=[new_markdown_cell(text, id="a")]))[0])


@pytest.mark.parametrize("picture", ["<img src='a.png'>", "<IMG src='a.png' title='falter'>"])
def test_a_picture_without_a_text_is_given_one(picture: str) -> None:
    assert 'alt="No description' in of_text(f"{picture}\n\n![two rows](b.png)")


def test_a_page_whose_pictures_have_texts_is_not_parsed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("nbconvert.exporters.html.BeautifulSoup", None)
    assert 'alt="two rows"' in of_text("![two rows](b.png)")


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
