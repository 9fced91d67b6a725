"""JupyterLab as a student has it: released notebooks, the code without hidden cases, a home where nothing is."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from autograder.exercises import of_assignment
from autograder.exercises.quality.question_tables import exercises_with_tables, table_of
from autograder.exercises.questions import SHIPPED
from scripts import student_tree
from scripts.browser import jupyter_server
from tests.architecture.source_tree import ROOT

SEEDS = range(10)  # of the questions that checks ask here
THEMES = "lab/user-settings/@jupyterlab/apputils-extension/themes.jupyterlab-settings"


def release(folder: Path, names: Sequence[str]) -> None:
    """Fill `folder` as the student image is filled; raises `CalledProcessError` if the release is refused."""
    command = [sys.executable, "-m", "autograder", "release", *names]
    subprocess.run(command, cwd=ROOT, env={**os.environ, "COURSE_WORK": str(folder / "work")}, check=True)
    (folder / "work" / "release").rename(folder / "notebooks")
    student_tree.copy_code(folder / "course")
    shipped = folder / "course" / SHIPPED.relative_to(ROOT)
    shipped.mkdir()
    for exercise in {each for name in names for each in of_assignment(name)} & set(exercises_with_tables()):
        (shipped / f"{exercise}.json").write_text(table_of(exercise, SEEDS), encoding="utf-8")


@contextmanager
def student_lab(folder: Path, *, dark: bool = False) -> Iterator[str]:
    """Start JupyterLab on what `release` put into `folder`; yields the server's address."""
    settings = folder / "home" / THEMES
    settings.parent.mkdir(parents=True, exist_ok=True)
    settings.write_text(json.dumps({"theme": f"JupyterLab {'Dark' if dark else 'Light'}"}))
    shown = ("--LabApp.expose_app_in_browser=True",)
    log, notebooks = folder / "server.log", folder / "notebooks"
    with jupyter_server("lab", notebooks, _environment(folder), log, options=shown) as address:
        yield address


def _environment(folder: Path) -> dict[str, str]:
    """The student image's variables, and everything that is remembered inside `folder`."""
    home = folder / "home"
    return {
        **os.environ,
        "JUPYTER_CONFIG_PATH": str(folder / "course" / "student_lab"),
        "JUPYTER_CONFIG_DIR": str(home),
        "JUPYTERLAB_SETTINGS_DIR": str(home / "lab" / "user-settings"),
        "JUPYTERLAB_WORKSPACES_DIR": str(home / "lab" / "workspaces"),
        "IPYTHONDIR": str(home / "ipython"),
        "XDG_STATE_HOME": str(home / "state"),
        "PYTHONPATH": str(folder / "course"),  # and not the checkout, which has the hidden cases
        "TENSORBOARD_PROXY_URL": "/proxy/%PORT%/",
        "HF_HUB_OFFLINE": "1",
    }
