"""The GPU check, tried out on the CPU: it runs every test, writes a record, and says so when one fails."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest
import torch

from tests.architecture.source_tree import ROOT

# A GPU machine may have none of these.
ABSENT = """
import sys
sys.modules.update(dict.fromkeys(["pytest", "nbgrader", "jupyterlab", "transformers", "rich", "graphviz"]))
"""
# One in a thousand wrong, except in double precision, which is what the tests compare with.
SPOILT = """
import torch.nn.functional as F
right = F.silu
F.silu = lambda x: right(x) * (1 if x.dtype.itemsize == 8 else 1.001)
"""


def gpu_check(*arguments: str, prologue: str = "") -> subprocess.CompletedProcess[str]:
    """Run the script as on a bare machine, after `prologue`."""
    script = str(ROOT / "benchmarks" / "gpu_check.py")
    start = f"import runpy, sys; sys.argv = {[script, *arguments]!r}; runpy.run_path({script!r}, run_name='__main__')"
    return subprocess.run(
        [sys.executable, "-c", f"{ABSENT}\n{prologue}\n{start}"], capture_output=True, text=True, check=False
    )


def test_a_bare_machine_runs_every_test_and_gets_a_record(tmp_path):
    answer = gpu_check("--dry-run", "--results", str(tmp_path))

    assert answer.returncode == 0, answer.stderr
    record = json.loads(next(tmp_path.glob("cpu-*.json")).read_text(encoding="utf-8"))
    assert len(record["tests"]) >= 12
    assert set(record["tests"].values()) == {"passed"}
    assert record["timer"]["checks"]
    assert record["kernels"]["left_out"] == []
    assert {one["program"] for one in record["kernels"]["measured"]} == {"eager", "compile", "peer", "kernel"}
    assert all(one["median_us"] > 0 for one in record["kernels"]["measured"])
    table = next(tmp_path.glob("cpu-*.md")).read_text(encoding="utf-8")
    for operator in {one["operator"] for one in record["kernels"]["measured"]}:
        assert table.count(f"| {operator} | 64 × 32 float32 |") == 2  # forward and backward


def test_an_operator_that_is_wrong_fails_the_check(tmp_path):
    answer = gpu_check("--dry-run", "--results", str(tmp_path), prologue=SPOILT)

    assert answer.returncode == 1, answer.stderr
    record = json.loads(next(tmp_path.glob("cpu-*.json")).read_text(encoding="utf-8"))
    assert any(outcome.startswith("failed: ") for outcome in record["tests"].values())


@pytest.mark.skipif(torch.cuda.is_available(), reason="is about a machine without CUDA")
def test_a_machine_without_cuda_is_told_so():
    answer = gpu_check()

    assert answer.returncode == 3
    assert "no CUDA device" in answer.stderr
