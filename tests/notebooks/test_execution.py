"""Every notebook runs top to bottom, each exercise met as students get it and then answered, offline, in a minute."""

import ast
import itertools
import operator
import os
from collections.abc import Iterable, Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

import nbclient
import nbformat
import pytest
from nbgrader.preprocessors import clearsolutions
from traitlets.config import loader

from tests.drawn import some
from tests.notebooks.warm_kernels import WarmKernels, warm_kernels
from tests.references import IN_NOTEBOOKS

COURSE = Path(__file__).parents[2]
NOTEBOOKS = sorted((COURSE / "notebooks").glob("*/*.ipynb"))
LIMIT_S = 60
ANSWERED, AFTERWARDS = "-answered", "-afterwards"
ENDED_AND_BEGAN = "shell.execute_reply", "iopub.execute_input"  # what nbclient notes of a cell

pytestmark = pytest.mark.slow
each_notebook = pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)


@pytest.fixture(scope="session")
def kernels(tmp_path_factory: pytest.TempPathFactory) -> Iterator[WarmKernels]:
    """Where kernels are forked from: one process for all that share the tests out."""
    place = tmp_path_factory.getbasetemp()
    with warm_kernels(place.parent if "PYTEST_XDIST_WORKER" in os.environ else place) as started:
        yield started


@pytest.fixture(autouse=True)
def quiet_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kernels: WarmKernels) -> None:
    """Practice writes its diary, and IPython its history, somewhere else than in the user's home."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path / "ipython"))
    monkeypatch.setenv("COURSE_WORK", str(tmp_path / "work"))
    monkeypatch.setenv("PATH", os.environ["PATH"])  # nbgrader's settings put something in front; undone afterwards
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    monkeypatch.delenv("NBGRADER_EXECUTION", raising=False)
    monkeypatch.delenv("PYTEST_CURRENT_TEST")  # where ipykernel sees it, it shows nothing of what C++ prints
    monkeypatch.setattr("jupyter_client.provisioning.local_provisioner.launch_kernel", kernels.launch)


def executed(notebook: Any, folder: Path) -> Any:
    """`notebook` with outputs; the network is out of reach as far as well-behaved code goes."""
    proxies = dict.fromkeys(("HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy"), "http://127.0.0.1:9")
    nbclient.NotebookClient(
        notebook, timeout=LIMIT_S, kernel_name="python3", resources={"metadata": {"path": str(folder)}}
    ).execute(env={**os.environ, **proxies})
    said = {
        cell.id: output.text
        for cell in notebook.cells
        for output in cell.get("outputs", [])
        if output.get("name") == "stderr"
    }
    assert said == {}, "nothing is printed as a warning or an error"
    return notebook


def seconds(cells: Iterable[Any]) -> float:
    """How long the cells ran."""
    times = [cell.metadata.execution for cell in cells if "execution" in cell.metadata]
    ended, began = ([datetime.fromisoformat(each[event]) for each in times] for event in ENDED_AND_BEGAN)
    return sum((end - begin).total_seconds() for end, begin in zip(ended, began, strict=True))


def released(path: Path) -> Any:
    """What nbgrader's own step makes of the source, with the course's settings."""
    settings = loader.PyFileConfigLoader("nbgrader_config.py", path=str(COURSE)).load_config()
    preprocessor = clearsolutions.ClearSolutions(config=settings)
    return preprocessor.preprocess(nbformat.read(path, as_version=4), {})[0]


def checks(notebook: Any) -> Iterator[tuple[str, float, str, str]]:
    """Exercise, points of the cell, the report as text and the report as HTML, of each check cell."""
    for cell in notebook.cells:
        if exercise := exercise_of(cell):
            (output,) = cell.outputs
            points = cell.metadata["nbgrader"]["points"]
            yield exercise, points, output.data["text/plain"], output.data["text/html"]


def exercise_of(cell: Any) -> str:
    """Return the exercise of a check; of other cells nothing. An answer that a person reads carries points as well."""
    flags = cell.metadata.get("nbgrader", {})
    return flags["grade_id"].removesuffix("_check") if flags.get("grade") and not flags["solution"] else ""


def marks(text: str) -> tuple[float, float]:
    """Earned and possible points from the first line of a report: `id: 6 / 6 points`."""
    earned, possible = text.splitlines()[0].split(": ")[1].split(" points")[0].split("/")
    return float(ast.literal_eval(earned.strip())), float(ast.literal_eval(possible.strip()))


def answered_one_by_one(path: Path) -> Any:
    """The released notebook in which our answer, try and check follow the checks of what is answered in this run.

    Half of the tries, others in each run, come in the end instead, for those who run all cells and answer afterwards.
    That no other cell reads what an exercise binds, so that all of them run with answers as they do without, is proved
    in `test_names.py`.
    """
    source, notebook = nbformat.read(path, as_version=4), released(path)
    assert "SOLUTION" not in nbformat.writes(notebook)
    places = [at for at, cell in enumerate(source.cells) if exercise_of(cell) in IN_NOTEBOOKS]
    at_once = some(places, len(places) // 2, name=path.stem)
    afterwards = [at for at in places if at not in at_once] or places
    cells = []
    for at, cell in enumerate(notebook.cells):
        cells.append(cell)
        if at in places:
            answer, attempt, check = source.cells[at - 2 : at + 1]
            cells += [copied(each, ANSWERED) for each in (answer, *[attempt] * (at in at_once), check)]
    notebook.cells = cells + [copied(source.cells[at - 1], AFTERWARDS) for at in afterwards]
    return notebook


def copied(cell: Any, ending: str) -> Any:
    """A copy of a cell, to stand beside it."""
    return nbformat.v4.new_code_cell(cell.source, id=cell.id + ending, metadata=cell.metadata)


@each_notebook
def test_each_exercise_is_not_answered_yet_and_then_passes_its_visible_checks(path: Path) -> None:
    notebook = executed(answered_one_by_one(path), path.parent)
    as_released = [cell for cell in notebook.cells if not cell.id.endswith((ANSWERED, AFTERWARDS))]
    assert seconds(as_released) < LIMIT_S * (2 if os.environ.get("PYTEST_XDIST_WORKER") else 1)
    reports = {name: list(both) for name, both in itertools.groupby(checks(notebook), key=operator.itemgetter(0))}
    assert [name for name in reports if name in IN_NOTEBOOKS] == [name for name, (_, *own) in reports.items() if own]
    assert reports
    for unanswered, *answered in reports.values():
        says_not_answered_yet(*unanswered)
        for report in answered:
            passes(*report)
            assert unanswered[:2] == report[:2]


def says_not_answered_yet(exercise: str, points: float, text: str, page: str) -> None:
    assert marks(text)[0] == 0, exercise
    assert "not answered yet" in text.lower()
    assert "Traceback" not in text + page


def passes(exercise: str, points: float, text: str, page: str) -> None:
    earned, possible = marks(text)
    assert earned == possible, text
    assert 0 < possible <= points, f"{exercise}: {possible} points in visible checks of {points}"
    assert exercise in page
