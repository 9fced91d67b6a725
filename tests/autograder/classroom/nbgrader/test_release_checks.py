"""A notebook with a mistake is not released, and a release that leaks is refused."""

import copy
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from autograder.classroom.cli import main
from autograder.classroom.nbgrader import release
from autograder.classroom.nbgrader.leaks import fingerprints, leaks, secret_fingerprints
from autograder.classroom.nbgrader.markers import BEGIN, END, marker_problems, with_solutions, without_solutions
from autograder.classroom.nbgrader.release import notebook_problems
from autograder.exercises import find

ROOT = Path(__file__).parents[4]
NAME, ANSWER = "05_fx_rewrite", "05_bias_silu_pass"
SOLUTION = f"def f(x):\n    {BEGIN}\n    return x + 1\n    {END}"


def problems(source: str, *, kind: str = "code", is_answer: bool = True) -> list[str]:
    return list(marker_problems({"cell_type": kind, "source": source}, "cell", is_answer=is_answer))


def test_a_well_marked_answer_has_no_problem() -> None:
    assert problems(SOLUTION) == []
    assert problems("# the solution begins below\nx = begin + offset\n", is_answer=False) == []
    assert problems("We begin; the solution is simple.", kind="markdown", is_answer=False) == []


MISTAKES = {
    "misspelt begin": (SOLUTION.replace("BEGIN", "BEGN"), "resembles"),
    "misspelt solution": (SOLUTION.replace("SOLUTION", "SOLUTON"), "resembles"),
    "lower case": (SOLUTION.replace("### BEGIN SOLUTION", "### begin solution"), "resembles"),
    "two hashes": (SOLUTION.replace("### BEGIN", "## BEGIN"), "resembles"),
    "no blank": (SOLUTION.replace("BEGIN SOLUTION", "BEGINSOLUTION"), "resembles"),
    "underscore": (SOLUTION.replace("BEGIN SOLUTION", "BEGIN_SOLUTION"), "resembles"),
    "words behind it": (SOLUTION.replace(BEGIN, f"{BEGIN} (short)"), "resembles"),
    "nested": (SOLUTION.replace(BEGIN, f"{BEGIN}\n    {BEGIN}"), "inside another"),
    "no end": (SOLUTION.replace(END, ""), "does not end"),
    "no beginning": (SOLUTION.replace(BEGIN, ""), "without its beginning"),
    "none": ("def f(x):\n    return x", "without a solution"),
    "hidden tests": (
        SOLUTION + "\n### BEGIN HIDDEN TESTS\nassert f(1) == 2\n### END HIDDEN TESTS",
        "autograder/exercises/hidden",
    ),
    "misspelt hidden tests": (SOLUTION + "\n### BEGIN HIDEN TESTS", "autograder/exercises/hidden"),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_wrong_marker_is_named(mistake: str) -> None:
    source, words = MISTAKES[mistake]
    assert any(words in problem for problem in problems(source)), problems(source)


@pytest.mark.parametrize("kind", ["code", "markdown", "raw"])
def test_a_marker_outside_an_answer_cell_is_refused(kind: str) -> None:
    assert problems(SOLUTION, kind=kind, is_answer=False)


def test_an_answer_without_its_solution_still_defines_its_function() -> None:
    assert without_solutions(SOLUTION) == "def f(x):\n    raise NotImplementedError"


def test_an_answer_with_its_solution_has_no_marker_left() -> None:
    solved = with_solutions(SOLUTION)
    assert "SOLUTION" not in solved
    assert set(solved.splitlines()) < set(SOLUTION.splitlines())


@pytest.fixture
def notebook() -> dict[str, Any]:
    loaded: dict[str, Any] = json.loads((ROOT / "notebooks" / NAME / f"{NAME}.ipynb").read_text())
    return loaded


def graded(notebook: dict[str, Any], name: str) -> dict[str, Any]:
    found: dict[str, Any] = next(
        c for c in notebook["cells"] if c["metadata"].get("nbgrader", {}).get("grade_id") == name
    )
    return found


def test_the_source_notebooks_have_no_problem() -> None:
    for path in sorted((ROOT / "notebooks").glob("*/*.ipynb")):
        assert notebook_problems(json.loads(path.read_text()), path.stem) == []


def _points(cell: dict[str, Any]) -> None:
    cell["metadata"]["nbgrader"]["points"] = 11


def _unlocked(cell: dict[str, Any]) -> None:
    cell["metadata"]["nbgrader"]["locked"] = False


def _other_text(cell: dict[str, Any]) -> None:
    cell["source"] = ["check('05_bias_silu_pass', fuse_bias_silu)"]


def _output(cell: dict[str, Any]) -> None:
    cell["outputs"] = [{"output_type": "stream", "name": "stdout", "text": "12.0"}]


def _other_id(cell: dict[str, Any]) -> None:
    cell["metadata"]["nbgrader"]["grade_id"] = "05_no_exercise"


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (_points, "is worth 11 points"),
        (_unlocked, "flag 'locked' must be True"),
        (_other_text, "must be exactly"),
        (_output, "holds an output"),
        (_other_id, "no exercise of 05_fx_rewrite has this id"),
        (_other_id, "missing"),
    ],
)
def test_a_check_cell_that_disagrees_with_its_exercise_is_named(notebook, change, words: str) -> None:
    change(graded(notebook, f"{ANSWER}_check"))
    assert any(words in problem for problem in notebook_problems(notebook, NAME))


def test_points_that_are_not_the_sum_of_the_checks_are_refused(notebook, monkeypatch) -> None:
    exercise = find(ANSWER, hidden=True)
    most = exercise.points + 3
    changed = replace(exercise, points=most)
    monkeypatch.setattr(release, "find", lambda name, **given: changed if name == ANSWER else find(name, **given))
    graded(notebook, f"{ANSWER}_check")["metadata"]["nbgrader"]["points"] = most
    (problem,) = notebook_problems(notebook, NAME)
    assert f"is worth {most:g} points, its checks {exercise.points:g} together" in problem


def test_an_answer_cell_that_does_not_define_the_entry_point_is_named(notebook) -> None:
    answer = graded(notebook, ANSWER)
    answer["source"] = "".join(answer["source"]).replace("def fuse_bias_silu", "def fuse_bias_sliu")
    assert any("does not define fuse_bias_silu" in p for p in notebook_problems(notebook, NAME))


def test_an_import_that_a_graded_answer_gets_must_stand_in_the_set_up_cell(notebook) -> None:
    (setup,) = [c for c in notebook["cells"] if "setup" in c["metadata"].get("tags", ())]
    setup["source"] = [line for line in setup["source"] if "course_lib.kernels" not in line]
    (problem,) = notebook_problems(notebook, NAME)
    assert "may use 'import course_lib.kernels', which does not stand there" in problem


def test_an_import_of_the_set_up_cell_that_a_graded_answer_lacks_is_named(notebook) -> None:
    (setup,) = [c for c in notebook["cells"] if "setup" in c["metadata"].get("tags", ())]
    setup["source"] = ["from heapq import merge, nlargest\n", *setup["source"]]
    problems = notebook_problems(notebook, NAME)
    assert [p.partition(";")[0] for p in problems] == [
        "set-up cell: a graded answer lacks 'from heapq import merge'",
        "set-up cell: a graded answer lacks 'from heapq import nlargest'",
    ]


SECRET = ["def answer(graph):", "    for node in list(graph.nodes):", "        if is_sum(node) and only_reader(node):"]


def test_two_lines_in_a_row_or_a_long_line_are_a_fingerprint() -> None:
    assert {f.text for f in fingerprints(SECRET, "x")} == {
        "for node in list(graph.nodes):\nif is_sum(node) and only_reader(node):"
    }
    assert [f.text for f in fingerprints(["y = " + "x" * 50], "x")] == ["y = " + "x" * 50]
    assert list(fingerprints(["# " + "x" * 80, "import torch", "return x", "    ", '"""' + "x" * 80], "x")) == []


@pytest.mark.parametrize("where", ["source", "output", "file"])
def test_a_leak_is_found_wherever_it_is(tmp_path: Path, where: str) -> None:
    secret = list(fingerprints(SECRET, "a solution"))
    text = "x = 1\n" + "\n".join(line.replace("    ", "\t") for line in SECRET)
    cell: dict[str, Any] = {"cell_type": "code", "source": ["fine"], "outputs": []}
    if where == "source":
        cell["source"] = text.splitlines(keepends=True)
    elif where == "output":
        cell["outputs"] = [{"data": {"text/plain": text.splitlines(keepends=True)}}]
    else:
        (tmp_path / "data.txt").write_text(text)
    (tmp_path / "a.ipynb").write_text(json.dumps({"cells": [cell]}))
    assert len(leaks(tmp_path, secret)) == 1
    assert leaks(tmp_path, []) == []


def test_every_solution_and_every_hidden_file_has_fingerprints() -> None:
    origins = {f.origin for f in secret_fingerprints(ROOT / "notebooks", ROOT / "autograder" / "exercises" / "hidden")}
    for path in sorted((ROOT / "notebooks").glob("*/*.ipynb")):
        assert f"a solution in {path.name}" in origins
    exercises = ROOT / "autograder" / "exercises"
    for path in sorted((exercises / "hidden").rglob("[a-z]*.py")):
        assert str(path.relative_to(exercises)) in origins


def test_what_a_lesson_gives_openly_is_no_secret_of_a_known_answer_but_a_hidden_check_is(tmp_path: Path) -> None:
    first = "kept = [row for row in rows if row['users'] == len(rows)]"
    given = [first, "print(sorted(kept, key=lambda row: row['node']))"]
    solved = "answer = {row['node']: row['users'] + 1 for row in kept if row}"
    stub = [*given, "### BEGIN SOLUTION", solved, "### END SOLUTION"]
    (tmp_path / "source" / "00_a").mkdir(parents=True)
    cells = [{"cell_type": "code", "source": [f"{line}\n" for line in stub]}]
    (tmp_path / "source" / "00_a" / "00_a.ipynb").write_text(json.dumps({"cells": cells}))
    (tmp_path / "hidden" / "answers").mkdir(parents=True)
    check = "drawn = [draw.integer(1, 40) for _ in range(draw.integer(2, 9))]"
    (tmp_path / "hidden" / "a.py").write_text(f"{check}\n{given[0]}\n")
    (tmp_path / "hidden" / "answers" / "a.py").write_text("\n".join([*given, solved, ""]))
    secrets = {one.text for one in secret_fingerprints(tmp_path / "source", tmp_path / "hidden")}
    assert {solved, check, given[0]} <= secrets
    assert given[1] not in secrets


def test_the_lessons_as_students_get_them_hold_no_solution_and_no_hidden_case(tmp_path: Path) -> None:
    secrets = secret_fingerprints(ROOT / "notebooks", ROOT / "autograder" / "exercises" / "hidden")
    for path in sorted((ROOT / "notebooks").glob("*/*.ipynb")):
        lesson = json.loads(path.read_text())
        for cell in lesson["cells"]:
            cell["source"] = without_solutions("".join(cell["source"]))
        (tmp_path / path.name).write_text(json.dumps(lesson))
    assert leaks(tmp_path, secrets) == []


def test_the_source_itself_would_be_refused_as_a_release() -> None:
    found = leaks(
        ROOT / "notebooks", secret_fingerprints(ROOT / "notebooks", ROOT / "autograder" / "exercises" / "hidden")
    )
    assert len([f for f in found if "a solution in" in f]) > 3


def test_checking_changes_nothing(notebook) -> None:
    before = copy.deepcopy(notebook)
    notebook_problems(notebook, NAME)
    assert notebook == before


def test_without_hidden_cases_a_release_is_refused_in_a_sentence(monkeypatch, capsys, tmp_path: Path) -> None:
    monkeypatch.setenv("COURSE_WORK", str(tmp_path))
    monkeypatch.setattr(release, "hidden_folder", lambda: None)
    assert main(["release", NAME]) == 3
    assert "This is a student's installation" in capsys.readouterr().err
    assert not (tmp_path / "release").exists()
