"""What pages of feedback have in common is compiled and coloured once; few pages need to be parsed."""

import jinja2
import pygments
import pytest
from nbconvert.filters.highlight import Highlight2HTML
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook

from autograder.classroom.nbgrader.course import open_course
from autograder.classroom.nbgrader.feedback import CompiledTemplates, FeedbackExporter, KeptColours


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


def test_a_cell_that_is_the_same_for_everybody_is_coloured_once(monkeypatch: pytest.MonkeyPatch) -> None:
    coloured, highlight = [], pygments.highlight

    def noted(code, *rest):
        coloured.append(code)
        return highlight(code, *rest)

    monkeypatch.setattr(pygments, "highlight", noted)
    pages = []
    for answer in ("# of cy", "# of dan"):
        cells = [new_code_cell("def shown(): return 'to all'", id="a"), new_code_cell(answer, id="b")]
        pages.append(str(FeedbackExporter().from_notebook_node(new_notebook(cells=cells))[0]))
    assert coloured == ["def shown(): return 'to all'", "# of cy", "# of dan"]
    assert pages[0].replace("of cy", "of dan") == pages[1]
    assert '<span class="k">def</span>' in pages[1]


@pytest.mark.parametrize(("metadata", "language"), [({}, "ipython3"), ({"magics_language": "html"}, "html")])
def test_colours_are_those_of_nbconvert(metadata: dict[str, str], language: str) -> None:
    text = "<b>def</b> def %x <script>"
    assert KeptColours()(text, metadata=metadata) == Highlight2HTML()(text, metadata=metadata)
    assert KeptColours()(text, "python") == Highlight2HTML()(text, "python") != KeptColours()(text, language)
    of_lines = {"extra_formatter_options": {"linenos": "inline"}}
    assert KeptColours(**of_lines)(text) == Highlight2HTML(**of_lines)(text) != KeptColours()(text)


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
