"""The cells of a hand-in are recognised, whatever a tool did to their metadata; what is not certain is for a person."""

import copy
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import pytest

from autograder.classroom.batch.engine import is_final
from autograder.classroom.cli import main
from autograder.classroom.hand_in import read_hand_in
from autograder.classroom.nbgrader.markers import without_solutions
from autograder.classroom.nbgrader.outside_kernel import without_mark
from autograder.classroom.report import class_html, class_text, summarise, this_environment
from autograder.classroom.report.attention import URGENCY_WORDS
from autograder.classroom.status import REFUSED
from autograder.classroom.submission import Submission, parse_submission
from autograder.exercises import answer_cells, find, of_assignment
from autograder.host import grading
from autograder.host.grading import STUB_CHARACTERS
from autograder.host.sandbox import Sandbox
from tests.architecture.source_tree import ROOT

NAME = "00_start_here"
Notebook = dict[str, Any]
Tool = Callable[[Notebook], None]
DOCTOR = "def ask_doctor(names):\n    return {name: 'found' for name in names}"
TABLE = "def read_table(rows):\n    return {'first': rows[0]['name']}"
ANSWERS = {"00_doctor": DOCTOR, "00_read_a_table": TABLE}
LESSONS = sorted(path.stem for path in (ROOT / "notebooks").glob("*/*.ipynb"))


def released(name: str = NAME) -> Notebook:
    """A lesson's notebook as students get it: without solutions."""
    notebook: Notebook = json.loads((ROOT / "notebooks" / name / f"{name}.ipynb").read_text())
    for cell in notebook["cells"]:
        if cell["metadata"].get("nbgrader", {}).get("solution"):
            cell["source"] = without_solutions("".join(cell["source"]))
    return notebook


def at(notebook: Notebook, name: str) -> int:
    """The place of the cell with this id of nbgrader."""
    ids = [cell["metadata"].get("nbgrader", {}).get("grade_id") for cell in notebook["cells"]]
    return ids.index(name)


def answered() -> Notebook:
    notebook = released()
    for name, text in ANSWERS.items():
        notebook["cells"][at(notebook, name)]["source"] = text
    return notebook


def read(notebook: Notebook, name: str = NAME) -> Submission:
    return parse_submission(json.dumps(notebook).encode(), f"{name}.ipynb")


def code_cell(text: str) -> Notebook:
    return {"cell_type": "code", "id": "mine", "metadata": {}, "source": text, "outputs": [], "execution_count": None}


def colab(n: Notebook) -> None:
    for number, cell in enumerate(n["cells"]):
        ours = cell.pop("id")
        cell["metadata"] = {"id": ours if number % 2 else f"x{number}", "colab": {"base_uri": "https://localhost"}}
    n["metadata"] = {"colab": {"provenance": []}, "kernelspec": {"name": "python3", "display_name": "Python 3"}}


def colab_keeps_ids(n: Notebook) -> None:
    for cell in n["cells"]:
        cell["metadata"] = {"id": cell.pop("id"), "outputId": "0f1e"}


def kaggle(n: Notebook) -> None:
    for number, cell in enumerate(n["cells"]):
        del cell["id"]
        cell["metadata"] = {"_uuid": f"{number:032x}", "_cell_guid": "b1", "trusted": True}


def vs_code(n: Notebook) -> None:
    for number, cell in enumerate(n["cells"]):
        cell["id"] = f"{number:08x}"
        cell["metadata"] = {"vscode": {"languageId": "python"}}
        cell["source"] = "".join(cell["source"]).replace("\n", "\r\n").splitlines(keepends=True)


def deepnote(n: Notebook) -> None:
    for number, cell in enumerate(n["cells"]):
        old = cell["id"]
        cell["metadata"] = {"cell_id": old, "deepnote_cell_type": cell["cell_type"]}
        cell["id"] = f"{number:032x}"
    n["nbformat_minor"] = 4


def databricks(n: Notebook) -> None:
    for number, cell in enumerate(n["cells"]):
        del cell["id"]
        about = {"nuid": f"{number:08x}", "title": "", "showTitle": False, "inputWidgets": {}}
        cell["metadata"] = {"application/vnd.databricks.v1+cell": about}


def nb_clean(n: Notebook) -> None:
    for cell in n["cells"]:
        cell["metadata"] = {}


def nbdev_clean(n: Notebook) -> None:
    nb_clean(n)
    for cell in n["cells"]:
        cell.pop("execution_count", None)
    n["metadata"] = {}


TOOLS = (colab, colab_keeps_ids, kaggle, vs_code, deepnote, databricks, nb_clean, nbdev_clean)


@pytest.mark.parametrize("tool", TOOLS, ids=lambda tool: tool.__name__)
def test_the_file_of_a_tool_that_drops_metadata_keeps_its_answers(tool: Tool) -> None:
    notebook = answered()
    tool(notebook)
    submission = read(notebook)
    assert {name: text.replace("\r\n", "\n") for name, text in submission.answers.items()} == ANSWERS
    assert any("lost their metadata" in note for note in submission.notes)
    assert submission.undecided == ""
    marked = [
        c["metadata"]["nbgrader"]["grade_id"] for c in submission.notebook["cells"] if "nbgrader" in c["metadata"]
    ]
    assert marked == [each for name in ANSWERS for each in (name, f"{name}_check")]


@pytest.mark.parametrize("name", LESSONS)
def test_a_released_notebook_is_read_as_it_is_and_also_without_metadata(name: str) -> None:
    notebook = released(name)
    submission = read(notebook, name)
    assert (submission.notes, submission.undecided) == ((), "")
    assert submission.notebook == notebook
    expected = submission.answers
    assert tuple(sorted(expected)) == tuple(sorted(of_assignment(name)))
    for tool in (nb_clean, kaggle):
        bare = copy.deepcopy(notebook)
        tool(bare)
        assert read(bare, name).answers == expected


@pytest.mark.parametrize("tool", [kaggle, vs_code], ids=lambda tool: tool.__name__)
def test_of_cells_without_metadata_the_last_definition_above_the_check_is_graded(
    tool: Callable[[Notebook], None],
) -> None:
    notebook = answered()
    where = at(notebook, "00_doctor")
    notebook["cells"].insert(where, code_cell("def ask_doctor(names):\n    return 'a first try'"))
    notebook["cells"].insert(where + 2, code_cell("ask_doctor(['torch'])"))
    tool(notebook)
    assert read(notebook).answers["00_doctor"].replace("\r\n", "\n") == DOCTOR


def test_a_copied_check_below_another_answer_leaves_the_case_to_a_person(tmp_path: Path) -> None:
    notebook = answered()
    kaggle(notebook)
    check = copy.deepcopy(next(c for c in notebook["cells"] if 'check("00_doctor"' in "".join(c["source"])))
    notebook["cells"] += [code_cell("def ask_doctor(names):\n    return {}"), check]
    submission = read(notebook)
    assert "00_doctor" in submission.undecided
    path = tmp_path / f"{NAME}.ipynb"
    path.write_text(json.dumps(notebook))
    hand_in = read_hand_in(NAME, "ada", path)
    assert (hand_in.undecided, hand_in.fault) == (submission.undecided, "")
    assert "released notebook" in hand_in.undecided


def undecided(tmp_path: Path) -> Path:
    notebook = answered()
    notebook["cells"][at(notebook, "00_doctor")]["source"] = released()["cells"][at(notebook, "00_doctor")]["source"]
    notebook["cells"] += [code_cell(DOCTOR), code_cell("def ask_doctor(names):\n    return {}")]
    path = tmp_path / "ada" / NAME / f"{NAME}.ipynb"
    path.parent.mkdir(parents=True)
    path.write_text(json.dumps(notebook))
    return path


def test_the_class_report_says_of_an_undecided_hand_in_what_to_do_and_gives_no_mark(tmp_path: Path) -> None:
    hand_in = read_hand_in(NAME, "ada", undecided(tmp_path))
    record = hand_in.grade(sandbox=cast("Sandbox", None), seed=1)  # no code of the answer is run
    summary = summarise([record])
    text, page = (
        show(summary, title="x", environment=this_environment(("seed", "1"))) for show in (class_text, class_html)
    )
    assert (record.points, record.max_points, is_final(record)) == (0, 0, False)
    (entry,) = summary.attention
    assert (URGENCY_WORDS[entry.urgency], entry.where) == ("decide", NAME)
    assert "several others define ask_doctor. Copy the answers into the released notebook" in entry.sentence
    for said in (text, page):
        assert "undecided" in said
        assert "not graded" not in said
        assert "error of ours" not in said
    assert without_mark(record.exercises).startswith("Undecided, so without a mark. The answer's cell of 00_doctor")


def test_grade_says_the_same_of_an_undecided_notebook(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["grade", str(undecided(tmp_path))]) == REFUSED
    said = capsys.readouterr()
    assert said.out == ""
    assert f"{NAME}.ipynb is undecided. The answer's cell of 00_doctor is untouched" in said.err
    assert "put it in the place of this file, and run the command again" in said.err


def test_a_notebook_in_which_nothing_can_be_told_apart_is_for_a_person_and_no_zero() -> None:
    notebook = {"cells": [code_cell("x = 1"), code_cell("def other():\n    return 2")]}
    assert "released notebook" in read(notebook).undecided


@pytest.mark.parametrize("cells", [[], [code_cell(" \n")], [{"cell_type": "markdown", "source": "hello"}]])
def test_a_notebook_without_code_holds_no_answer(cells: list[Notebook]) -> None:
    submission = read({"cells": cells})
    assert (submission.answers, submission.undecided) == ({}, "")


def test_a_deleted_answer_stays_deleted_where_the_others_have_their_metadata() -> None:
    notebook = answered()
    del notebook["cells"][at(notebook, "00_doctor")]
    submission = read(notebook)
    assert (submission.answers, submission.undecided) == ({"00_read_a_table": TABLE}, "")


def test_an_answer_written_again_in_a_cell_without_metadata_is_found_by_its_check() -> None:
    notebook = answered()
    notebook["cells"][at(notebook, "00_doctor")] = code_cell(DOCTOR)
    submission = read(notebook)
    assert submission.answers == ANSWERS
    assert "check" in submission.notes[0]


def test_what_was_checked_goes_before_metadata_and_metadata_before_the_id() -> None:
    notebook = answered()
    decoy = code_cell("def ask_doctor(names):\n    return 'a decoy'") | {"id": "00_doctor"}
    notebook["cells"].append(decoy)
    assert "the answer's cell of 00_doctor counts" in str(read(notebook).notes)
    kaggle(notebook)
    notebook["cells"][-1]["id"] = "00_doctor"
    submission = read(notebook)
    assert submission.answers == ANSWERS
    assert "recognised by their cell ids" in submission.notes[0]
    assert "is not the one that was checked" in str(submission.notes)


@pytest.mark.parametrize("behind", [True, False])
def test_an_answer_in_a_new_cell_next_to_the_untouched_stub_is_graded(behind: bool) -> None:
    notebook = answered()
    where = at(notebook, "00_doctor")
    notebook["cells"][where]["source"] = released()["cells"][where]["source"]
    notebook["cells"].insert(where + behind, code_cell(DOCTOR))
    submission = read(notebook)
    assert submission.answers == ANSWERS
    assert "ask_doctor" in submission.notes[0]


def test_two_answers_next_to_the_untouched_stub_are_for_a_person() -> None:
    notebook = answered()
    where = at(notebook, "00_doctor")
    notebook["cells"][where]["source"] = released()["cells"][where]["source"]
    notebook["cells"].insert(where, code_cell("def ask_doctor(names):\n    return {}"))
    notebook["cells"].append(code_cell(DOCTOR))
    assert "00_doctor" in read(notebook).undecided


@pytest.mark.parametrize("order", [("answer", "stub"), ("stub", "answer"), ("stub", "answer", "stub")])
def test_a_copy_of_the_stub_is_no_part_of_the_answer(order: tuple[str, ...]) -> None:
    notebook, stub = answered(), released()
    where = at(notebook, "00_doctor")
    cells = {"answer": notebook["cells"][where], "stub": stub["cells"][where]}
    notebook["cells"][where : where + 1] = [copy.deepcopy(cells[each]) for each in order]
    submission = read(notebook)
    assert submission.answers == ANSWERS
    assert "copy of the stub" in submission.notes[0]


def test_the_first_part_of_a_split_answer_is_kept_with_its_imports() -> None:
    notebook = answered()
    where = at(notebook, "00_doctor")
    first = copy.deepcopy(notebook["cells"][where]) | {"source": "import math"}
    notebook["cells"].insert(where, first)
    assert read(notebook).answers["00_doctor"] == f"import math\n{DOCTOR}"


def test_the_last_part_of_a_split_answer_may_go_on_without_the_name() -> None:
    notebook = answered()
    where = at(notebook, "00_doctor")
    rest = copy.deepcopy(notebook["cells"][where]) | {"source": "LIMIT = 3"}
    notebook["cells"].insert(where + 1, rest)
    submission = read(notebook)
    assert submission.answers["00_doctor"] == f"{DOCTOR}\nLIMIT = 3"
    assert submission.undecided == ""


def test_another_cell_that_defines_the_name_is_to_be_looked_at() -> None:
    notebook = answered()
    notebook["cells"].append(code_cell("def ask_doctor(names):\n    return 'changed'"))
    submission = read(notebook)
    assert submission.answers == ANSWERS
    (note,) = submission.notes
    assert "also defines ask_doctor" in note


@pytest.mark.parametrize("count", [10, 120])
def test_each_of_many_long_cells_is_parsed_once_and_no_more_of_them_than_a_lesson_has(
    count: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    name, parse = "01_transformer", grading.parsed
    names = [find(exercise).entry_point for exercise in of_assignment(name)]
    head = "".join(f"def {each}():\n    a\n" for each in names)
    texts = [head + f"x = {number}\n".ljust(STUB_CHARACTERS - len(head), "#") for number in range(count)]
    read_texts: list[str] = []
    monkeypatch.setattr(grading, "parsed", lambda text, most: read_texts.append(text) or parse(text, most=most))

    read({"cells": [code_cell(text) for text in texts], "metadata": {}, "nbformat": 4, "nbformat_minor": 5}, name)

    assert len(read_texts) == len(set(read_texts)) == min(count, answer_cells.MOST_PARSED // STUB_CHARACTERS)
