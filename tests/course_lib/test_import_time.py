"""Importing the library costs little beyond torch, and does nothing."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence

from benchmarks.fusion_passes import import_seconds, public_packages

LIMIT_S = 1.5  # CPU time beyond torch
EFFECTS = """
import logging, os, random, sys, threading, warnings
import torch

def state():
    return {{
        "the random state": (hash(random.getstate()), torch.initial_seed(), torch.get_rng_state().sum().item()),
        "threads": (threading.active_count(), torch.get_num_threads()),
        "the environment": dict(os.environ),
        "defaults": (torch.get_default_dtype(), torch.is_grad_enabled(), torch.get_default_device()),
        "logging": (logging.root.level, list(logging.root.handlers)),
        "warnings": list(warnings.filters),
        "the working directory": (os.getcwd(), sorted(os.listdir())),
        "CUDA": torch.cuda.is_initialized(),
        "hooks": (sys.excepthook, sys.displayhook, sys.gettrace(), sys.getprofile()),
    }}

before = state()
import {names}
after = state()
print(*[name for name in before if before[name] != after[name]], sep=", ")
"""


def test_it_takes_less_than_a_second_and_a_half_beyond_torch() -> None:
    for _ in range(3):  # a machine that is busy with something else may need another look
        beyond = import_seconds(public_packages()) - import_seconds(("torch",))
        print(f"importing course_lib: {beyond:.2f} CPU s beyond torch")
        if beyond < LIMIT_S:
            return
    raise AssertionError(f"importing course_lib took {beyond:.2f} CPU s beyond torch, of {LIMIT_S}")


def test_it_changes_nothing_prints_nothing_and_writes_nothing(tmp_path: os.PathLike[str]) -> None:
    assert _changed(public_packages(), tmp_path) == ""


def test_a_change_would_be_seen(tmp_path: os.PathLike[str]) -> None:
    assert _changed(("torch; torch.manual_seed(1)",), tmp_path) == "the random state"


def _changed(names: Sequence[str], folder: os.PathLike[str]) -> str:
    """Return what importing changes in a fresh interpreter, and what it prints."""
    paths = os.pathsep.join(path for path in sys.path if path)
    environment = {**os.environ, "PYTHONPATH": paths, "PYTHONDONTWRITEBYTECODE": "1"}
    command = [sys.executable, "-c", EFFECTS.format(names=", ".join(names))]
    run = subprocess.run(command, capture_output=True, text=True, check=True, cwd=folder, env=environment)
    return (run.stdout + run.stderr).strip()
