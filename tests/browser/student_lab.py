"""JupyterLab as a student has it: released notebooks, the code without hidden cases, a home where nothing is."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from scripts import student_tree
from tests.architecture.source_tree import ROOT

PATIENCE_S = 60.0
THEMES = "lab/user-settings/@jupyterlab/apputils-extension/themes.jupyterlab-settings"


def release(folder: Path, names: Sequence[str]) -> None:
    """Fill ``folder`` as the student image is filled; raises `CalledProcessError` if the release is refused."""
    command = [sys.executable, "-m", "autograder.host.nbgrader.release", *names]
    subprocess.run(command, cwd=ROOT, env={**os.environ, "COURSE_WORK": str(folder / "work")}, check=True)
    (folder / "work" / "release").rename(folder / "notebooks")
    student_tree.copy_code(folder / "course")


@contextmanager
def student_lab(folder: Path, *, dark: bool = False) -> Iterator[str]:
    """Start JupyterLab on what `release` put into ``folder``; yields the server's address."""
    settings = folder / "home" / THEMES
    settings.parent.mkdir(parents=True, exist_ok=True)
    settings.write_text(json.dumps({"theme": f"JupyterLab {'Dark' if dark else 'Light'}"}))
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    options = [f"--port={port}", "--no-browser", "--allow-root", "--IdentityProvider.token=", "--ServerApp.password="]
    command = [sys.executable, "-m", "jupyter", "lab", *options, "--LabApp.expose_app_in_browser=True"]
    with (folder / "server.log").open("w") as log:
        process = subprocess.Popen(
            command,
            cwd=folder / "notebooks",
            env=_environment(folder),
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
        )
    try:
        _wait(f"http://127.0.0.1:{port}/api", folder / "server.log")
        yield f"http://127.0.0.1:{port}"
    finally:
        process.terminate()
        process.wait()


def _environment(folder: Path) -> dict[str, str]:
    """The student image's variables, and everything that is remembered inside ``folder``."""
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


def _wait(address: str, log: Path) -> None:
    until = time.monotonic() + PATIENCE_S
    while time.monotonic() < until:
        try:
            urllib.request.urlopen(address).close()
            return
        except OSError:
            time.sleep(0.25)
    raise TimeoutError(f"JupyterLab does not answer; its last words: {log.read_text()[-1000:]}")
