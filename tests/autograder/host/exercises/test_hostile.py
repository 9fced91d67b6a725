"""A hostile answer fools a naive grader, and earns nothing here with hidden checks on."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from autograder.host.exercises import find
from autograder.host.judge import judge
from autograder.host.sandbox import open_sandbox

ROOT = Path(__file__).parents[4]
HOSTILE = sorted((ROOT / "tests" / "submissions" / "hostile").glob("[0-9][0-9]_*/*.py"))


def naive_score(path: Path, forged: Path) -> float:
    """What the naive grader reads as the verdict: the last score on its standard output, 1.0 if it never ended."""
    command = [sys.executable, str(Path(__file__).parent / "naive_grader.py"), path.parent.name, str(path)]
    done = subprocess.run(
        command,
        capture_output=True,
        text=True,
        timeout=60,
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT), "FORGED": str(forged)},
    )
    scores = re.findall(r'^\{"score".*\}$', done.stdout, re.MULTILINE)
    assert scores, f"the naive grader gave no verdict: {done.stderr[-2000:]}"
    return json.loads(scores[-1])["score"]


@pytest.mark.parametrize("path", HOSTILE, ids=[f"{p.parent.name}/{p.stem}" for p in HOSTILE])
def test_the_attack_gets_full_marks_from_a_naive_grader(path, tmp_path):
    assert naive_score(path, tmp_path / "forged") == 1.0
    assert (tmp_path / "forged").exists() == (path.stem == "named_os_system")


@pytest.mark.parametrize("path", HOSTILE, ids=[f"{p.parent.name}/{p.stem}" for p in HOSTILE])
def test_the_attack_earns_nothing_here(path):
    exercise = find(path.parent.name, hidden=True)
    record = judge(exercise, {"setup": exercise.setup, "answer": path.read_text()}, sandbox=open_sandbox(), seed=7)
    earned = [(c.name, c.points, c.message) for c in record.checks if c.points]
    assert record.points == 0, earned
    assert record.status != "grader_error", record.message
    assert not Path("/tmp/forged").exists()
