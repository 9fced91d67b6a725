"""Every notebook runs top to bottom, as we wrote it and as students get it, offline and within a minute."""

import ast
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

nbformat = pytest.importorskip("nbformat")
nbclient = pytest.importorskip("nbclient")
loader = pytest.importorskip("traitlets.config.loader")
clearsolutions = pytest.importorskip("nbgrader.preprocessors.clearsolutions")

COURSE = Path(__file__).parents[2]
NOTEBOOKS = sorted((COURSE / "notebooks").glob("*/*.ipynb"))
LIMIT_S = 60

pytestmark = pytest.mark.slow
each_notebook = pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)


@pytest.fixture(autouse=True)
def quiet_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Practice writes its diary, and IPython its history, somewhere else than in the user's home."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path / "ipython"))
    monkeypatch.setenv("COURSE_WORK", str(tmp_path / "work"))
    monkeypatch.setenv("PATH", os.environ["PATH"])  # nbgrader's settings put something in front; undone afterwards
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    monkeypatch.delenv("NBGRADER_EXECUTION", raising=False)


def executed(notebook: Any, folder: Path) -> Any:
    """``notebook`` with outputs; the network is out of reach as far as well-behaved code goes."""
    proxies = dict.fromkeys(("HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy"), "http://127.0.0.1:9")
    started = time.monotonic()
    nbclient.NotebookClient(
        notebook, timeout=LIMIT_S, kernel_name="python3", resources={"metadata": {"path": str(folder)}}
    ).execute(env={**os.environ, **proxies})
    seconds = time.monotonic() - started
    said = {
        cell.id: output.text
        for cell in notebook.cells
        for output in cell.get("outputs", [])
        if output.get("name") == "stderr"
    }
    assert said == {}, "nothing is printed as a warning or an error"
    assert seconds < LIMIT_S * (2 if os.environ.get("PYTEST_XDIST_WORKER") else 1), f"{seconds:.0f} s"
    return notebook


def released(path: Path) -> Any:
    """What nbgrader's own step makes of the source, with the course's settings."""
    settings = loader.PyFileConfigLoader("nbgrader_config.py", path=str(COURSE)).load_config()
    preprocessor = clearsolutions.ClearSolutions(config=settings)
    return preprocessor.preprocess(nbformat.read(path, as_version=4), {})[0]


def checks(notebook: Any) -> Iterator[tuple[str, float, str, str]]:
    """Exercise, points of the cell, the report as text and the report as HTML, of each check cell."""
    for cell in notebook.cells:
        flags = cell.metadata.get("nbgrader", {})
        if flags.get("grade"):
            (output,) = cell.outputs
            yield (
                flags["grade_id"].removesuffix("_check"),
                flags["points"],
                output.data["text/plain"],
                output.data["text/html"],
            )


def marks(text: str) -> tuple[float, float]:
    """Earned and possible points from the first line of a report: ``id: 6 / 6 points``."""
    earned, possible = text.splitlines()[0].split(": ")[1].split(" points")[0].split("/")
    return float(ast.literal_eval(earned.strip())), float(ast.literal_eval(possible.strip()))


def tried_at_the_end(notebook: Any) -> Any:
    """``notebook`` with every try once more behind all else, as for those who run all cells and answer afterwards."""
    answered = (cell.metadata.get("nbgrader", {}).get("solution", False) for cell in notebook.cells)
    tries = [notebook.cells[at + 1] for at, is_answer in enumerate(answered) if is_answer]
    notebook.cells += [nbformat.v4.new_code_cell(each.source, id=f"{each.id}-again") for each in tries]
    return notebook


@each_notebook
def test_the_source_runs_and_every_visible_check_is_passed(path: Path) -> None:
    notebook = executed(tried_at_the_end(nbformat.read(path, as_version=4)), path.parent)
    reports = list(checks(notebook))
    assert reports
    for exercise, points, text, page in reports:
        earned, possible = marks(text)
        assert earned == possible, text
        assert 0 < possible <= points, f"{exercise}: {possible} points in visible checks of {points}"
        assert exercise in page


@each_notebook
def test_the_released_notebook_runs_and_says_not_answered_yet(path: Path) -> None:
    notebook = released(path)
    assert "SOLUTION" not in nbformat.writes(notebook)
    executed(notebook, path.parent)
    for _, _, text, page in checks(notebook):
        assert marks(text)[0] == 0
        assert "not answered yet" in text.lower()
        assert "Traceback" not in text + page
