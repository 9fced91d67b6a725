"""A released notebook opens, runs and is checked in JupyterLab, and what would annoy a reader is found."""

import asyncio

import nbformat
import pytest

from tests.browser.look import look_at, names_of_notebooks, references
from tests.browser.needs import needs_chromium
from tests.browser.student_lab import release, student_lab

NAME = "00_start_here"
UGLY = {
    "traceback": "1 / 0",
    "warning": "import warnings; warnings.warn('mind the gap')",
    "wall": "print('\\n'.join('brick' for _ in range(41)))",
    "folded": "print('x' * 400)",
    "wide-code": "wide = '" + "x" * 300 + "'",
    "silent-picture": "from IPython.display import HTML\nHTML('<img src=\"data:image/gif;base64,R0lG\">')",
    "wide-table": "from IPython.display import HTML\nHTML('<div style=\"width:3000px\">wide</div>')",
    "fine": "print('nothing to say about this one')",
}
FOUND = {
    ("traceback", "error"),
    ("warning", "stderr"),
    ("wall", "a wall of text"),
    ("folded", "printed lines that do not fit"),
    ("wide-code", "code wider than the page"),
    ("silent-picture", "image without alt text"),
    ("wide-table", "wider than the page"),
}

pytestmark = pytest.mark.browser


@pytest.fixture(scope="module")
def student(tmp_path_factory):
    """A student's folder with one notebook of the course, and one that nobody should be given."""
    folder = tmp_path_factory.mktemp("student")
    release(folder, [NAME])
    ugly = nbformat.v4.new_notebook(metadata={"kernelspec": {"name": "python3", "display_name": "Python 3"}})
    for name, text in UGLY.items():
        # the traceback must not stop the rest
        tags = ["raises-exception"] if name == "traceback" else []
        ugly.cells.append(nbformat.v4.new_code_cell(text, id=name, metadata={"tags": tags}))
    (folder / "notebooks" / "ugly").mkdir()
    nbformat.write(ugly, folder / "notebooks" / "ugly" / "ugly.ipynb")
    return folder


@pytest.fixture(scope="module")
def server(student):
    with student_lab(student) as address:
        yield address


@pytest.mark.slow
@needs_chromium
def test_a_released_notebook_runs_in_jupyterlab_and_its_exercises_are_answered_and_checked(server, tmp_path):
    found = asyncio.run(look_at(NAME, server, tmp_path, answers=references(NAME)))

    assert found == []
    pictures = {path.name for path in tmp_path.iterdir()}
    assert {"00_opened.png", "01.png", *(f"answered_{exercise}.png" for exercise in references(NAME))} <= pictures


@pytest.mark.slow
@needs_chromium
def test_what_would_annoy_a_reader_is_found(server, tmp_path):
    found = asyncio.run(look_at("ugly", server, tmp_path, answers={}))

    assert {(one.cell, one.what) for one in found} == FOUND


@pytest.mark.parametrize("name", names_of_notebooks())
def test_an_answer_is_the_source_without_its_markers(name):
    answers = references(name)

    assert answers
    assert not any("SOLUTION" in text or "NotImplementedError" in text for text in answers.values())
