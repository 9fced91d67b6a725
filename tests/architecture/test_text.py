"""What no tracked file may say: a path of somebody's machine, or how the project came about."""

import ast
import json
import re

import pytest

from tests.architecture.source_tree import CODE, ROOT, python_files, statements, tracked_files

# Written so that no pattern matches itself.
FORBIDDEN = {
    "a path of one machine": re.compile(r"(?<![\w.}*])/(?:work|farm|root|Users)/(?!\*)"),
    "a path beside the project": re.compile(r"\.\./sha[r]ed"),
    "a tool that is not part of the project": re.compile(r"\bbuild-[i]mage\b"),
    "the number of an issue": re.compile(r"\b[Ii]ssue #?\d"),
}
BINARY = {".png", ".ico", ".pt", ".pyc"}
DOCUMENTED = ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef
LICENCES = {"LICENSE", "LICENSE-notebooks"}


def forbidden_texts(text: str) -> list[str]:
    """Return a line for each forbidden thing that `text` says, with what was found."""
    return [f"{what}: {found[0]}" for what, pattern in FORBIDDEN.items() if (found := pattern.search(text))]


def outputs_in(notebook: dict[str, list[dict[str, object]]]) -> bool:
    """Tell whether a notebook was saved with outputs or execution counts."""
    return any(cell.get("outputs") or cell.get("execution_count") for cell in notebook["cells"])


def test_no_file_names_a_machine_or_the_projects_making():
    names = [name for name in tracked_files() if name not in LICENCES and (ROOT / name).suffix not in BINARY]
    found = {name: forbidden_texts((ROOT / name).read_text(encoding="utf-8", errors="replace")) for name in names}

    assert {name: texts for name, texts in found.items() if texts} == {}


def other_style(source: str) -> list[str]:
    """Return which rules of style a Python file breaks that ruff cannot check."""
    docstrings = [ast.get_docstring(node) or "" for node in statements(source) if isinstance(node, DOCUMENTED)]
    found = ["double backticks in a docstring"] if any("``" in text for text in docstrings) else []
    return found + (["from __future__"] if re.search(r"^from __future__ import", source, re.MULTILINE) else [])


def test_python_files_are_written_in_one_style():
    found = {str(path.relative_to(ROOT)): other_style(path.read_text(encoding="utf-8")) for path in python_files(*CODE)}

    assert {name: texts for name, texts in found.items() if texts} == {}


def test_the_check_sees_another_style():
    assert other_style('def f():\n    """Return ``x``."""\n') == ["double backticks in a docstring"]
    assert other_style("from __future__ import annotations\n") == ["from __future__"]


def test_notebooks_are_kept_without_outputs():
    notebooks = sorted(ROOT.glob("notebooks/*/*.ipynb"))

    assert [path.name for path in notebooks if outputs_in(json.loads(path.read_text(encoding="utf-8")))] == []


@pytest.mark.parametrize(
    "text",
    [
        "see /" + "root/.bashrc",
        "cd /" + "work/main",
        "read ../" + "shared/notes",
        "made with build-" + "image",
        "closes issue" + " 2",
    ],
)
def test_the_check_sees_a_forbidden_text(text):
    assert forbidden_texts(text)


def test_the_check_leaves_our_own_folders_alone():
    assert forbidden_texts("work/report/index.html and $(VENV)/work and ${x}/work/ and home/learner") == []


def test_the_check_sees_an_output():
    assert outputs_in({"cells": [{"outputs": [{"text": "1"}]}]})
