"""What pages of feedback have in common is compiled and typeset once."""

import html

import jinja2
import pytest
from nbconvert.filters.highlight import Highlight2HTML
from nbformat.v4 import new_code_cell, new_notebook

from autograder.classroom.nbgrader.course import open_course
from autograder.classroom.nbgrader.feedback import CompiledTemplates, FeedbackExporter
from autograder.classroom.nbgrader.outside_kernel import write_mark
from autograder.classroom.pages import filters
from autograder.classroom.pages.feedback_head import head
from autograder.classroom.pages.typesetting import typeset
from autograder.host.records import CheckRecord, CheckStatus, ExerciseRecord, ExerciseStatus


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


def test_a_cell_that_is_the_same_for_everybody_is_typeset_once(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []
    call = filters._process.call

    def noted(arguments: dict[str, str], *, cpu_s: float) -> tuple[str | None, float]:
        asked.append(arguments["text"])
        return call(arguments, cpu_s=cpu_s)

    monkeypatch.setattr(filters, "_typeset", {})
    monkeypatch.setattr(filters._process, "call", noted)
    pages = []
    for answer in ("# of cy", "# of dan"):
        cells = [new_code_cell("def shown(): return 'to all'", id="a"), new_code_cell(answer, id="b")]
        pages.append(str(FeedbackExporter().from_notebook_node(new_notebook(cells=cells))[0]))
    assert asked == ["def shown(): return 'to all'", "# of cy", "# of dan"]
    assert pages[0].replace("of cy", "of dan") == pages[1]
    assert '<span class="k">def</span>' in pages[1]


@pytest.mark.parametrize(("metadata", "language"), [({}, "ipython3"), ({"magics_language": "html"}, "html")])
def test_colours_are_those_of_nbconvert(metadata: dict[str, str], language: str) -> None:
    text = "<b>def</b> def %x <script>"
    made = typeset("code", text, magics=metadata.get("magics_language"))
    theirs = Highlight2HTML()(text, metadata=metadata)

    assert html.unescape(made) == html.unescape(theirs)
    assert html.unescape(typeset("code", text, language="python")) != html.unescape(typeset("code", text))


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


def graded_cell(*checks: CheckRecord, status: ExerciseStatus = ExerciseStatus.GRADED, message: str = "", score=None):
    """Return a check cell as the grading step leaves it, and the gradebook's marks on it."""
    points, most = (sum(getattr(check, part) for check in checks) for part in ("points", "max_points"))
    cell = new_code_cell("check()", metadata={"nbgrader": {"grade_id": "04_x_check", "grade": True, "points": most}})
    write_mark(cell, ExerciseRecord("04_x", "value", points, most, status, message, checks), title="Read <a graph>")
    cell.metadata["nbgrader"]["score"] = points if score is None else score
    return cell


def check(name: str, passed: bool, message: str = "", *, hidden: bool = False) -> CheckRecord:
    status = CheckStatus.PASSED if passed else CheckStatus.FAILED
    return CheckRecord(name, "odd sizes", hidden, status, 2.0 * passed, 2.0, message)


def head_of(*cells) -> str:
    return head(new_notebook(cells=cells), {"notebook": "04_fx", "score": 3.0, "max_score": 6.0, "late_penalty": 1.0})


def test_the_head_begins_with_what_was_earned_and_names_the_first_failure() -> None:
    seen = head_of(
        graded_cell(check("names", True), check("order", False, "Got `b`, <b>first</b>."), check("c", False))
    )

    assert "3 of 6 points, 50 %; 1 point was deducted for lateness" in seen
    assert '<a href="#04_x_check">Read &lt;a graph&gt;</a>' in seen
    assert "2 / 6" in seen
    assert "order: Got <code>b</code>, &lt;b&gt;first&lt;/b&gt;." in seen


def test_of_hidden_checks_the_head_says_the_category_only() -> None:
    seen = head_of(graded_cell(check("names", True), check("secret", False, "of 3 nodes", hidden=True)))
    assert "Hidden checks that failed: odd sizes." in seen
    assert "secret" not in seen
    assert "of 3 nodes" not in seen


@pytest.mark.parametrize(
    ("status", "said"),
    [
        (ExerciseStatus.NOT_FOUND, "Not answered. The cell is missing."),
        (ExerciseStatus.TIMED_OUT, "Stopped at the time limit. The cell is missing."),
    ],
)
def test_an_answer_that_was_not_graded_says_why(status: ExerciseStatus, said: str) -> None:
    assert said in head_of(graded_cell(check("names", False), status=status, message="The cell is missing."))


def test_the_head_shows_the_points_that_a_person_gave() -> None:
    assert "1.5 / 2" in head_of(graded_cell(check("names", False), score=1.5))


def test_what_a_student_put_into_a_cell_is_no_part_of_the_head() -> None:
    cell = new_code_cell("check()", metadata={"nbgrader": {"grade_id": "04_x_check", "grade": True, "points": 2}})
    assert "✓" not in head_of(cell)
