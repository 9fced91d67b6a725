"""Importing the library costs little beyond torch, and does nothing."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks.fusion_passes import public_packages
from tests.autograder.host.forked_command import fork_command

LIMIT_S = 1.5  # CPU time beyond torch
EFFECTS = """
import logging, os, random, sys, threading, time, warnings
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
        "our Triton kernels": "course_lib.kernels.triton" in sys.modules,
    }}

before, started = state(), time.process_time()
import {names}
seconds, after = time.process_time() - started, state()
print(*[name for name in before if before[name] != after[name]], seconds, sep=", ")
"""


def test_it_changes_nothing_prints_nothing_writes_nothing_and_takes_less_than_a_second_and_a_half(
    tmp_path: Path,
) -> None:
    for _ in range(3):  # a machine that is busy with something else may need another look at the time
        printed = subprocess.run(
            [sys.executable, "-c", EFFECTS.format(names=", ".join(public_packages()))],
            env=_environment(),
            cwd=tmp_path,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=True,
        ).stdout.strip()
        changed, _, beyond_s = printed.rpartition(", ")
        assert changed == ""
        if float(beyond_s) < LIMIT_S:
            return
    raise AssertionError(f"importing course_lib took {beyond_s} CPU s beyond torch, of {LIMIT_S}")


@pytest.mark.parametrize(
    ("statement", "name"),
    [
        ("torch; torch.manual_seed(1)", "the random state"),
        ("os; os.environ['SEEN'] = ''", "the environment"),
        ("time; time.sleep(0)", ""),
    ],
)
def test_a_change_would_be_seen(statement: str, name: str, tmp_path: Path) -> None:
    script = tmp_path / "effects.py"
    script.write_text(EFFECTS.format(names=statement), encoding="utf-8")
    status, printed = fork_command([str(script)], tmp_path, _environment()).finish()
    assert status == 0
    assert printed.rpartition(", ")[0] == name


def _environment() -> dict[str, str]:
    paths = os.pathsep.join(path for path in sys.path if path)
    return {**os.environ, "PYTHONPATH": paths, "PYTHONDONTWRITEBYTECODE": "1"}
