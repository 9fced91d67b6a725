"""Each measurement has a quick run that shows all of it, and what is printed is kept with the machine."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.architecture.source_tree import ROOT

# A measurement, and what its quick run prints.
QUICK = {
    "attack_suite": ("no attack succeeded", r"\d+ passed", r"strongest level here +\d"),
    "capture_comparison": ("The gallery", "Our models", r"perceptron +✓", "✗ silently wrong"),
    "timing_decisions": (r"loaded .*compute", "idle: 0|idle: [1-9]", "wrongly failed", "95 % confidence"),
    "fusion_passes": (r"bias_gelu +2 → 1", r"sdpa", r"layers +nodes +fused", r"\n +2 +\d+ +\d+"),
}


def record(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "benchmarks.record", *arguments]
    return subprocess.run(command, capture_output=True, text=True, cwd=ROOT, check=False)


@pytest.mark.parametrize("name", QUICK)
def test_a_quick_run_prints_its_tables_and_is_kept_with_the_machine(name: str, tmp_path: Path) -> None:
    answer = record(name, "--quick", "--results", str(tmp_path))

    assert answer.returncode == 0, answer.stderr
    kept = (tmp_path / f"{name}.md").read_text(encoding="utf-8")
    assert f"`python -m benchmarks.record {name} --quick`" in kept
    assert re.search(r"^- .*\d+ cores, torch threads: 1.*load \d", kept, re.MULTILINE)
    assert re.search(r"^- .*Python 3\..*torch 2\.", kept, re.MULTILINE)
    assert re.search(r"^- load when it ended: \d+\.\d; exit status 0$", kept, re.MULTILINE)
    for expected in QUICK[name]:
        assert re.search(expected, kept), expected
        assert re.search(expected, answer.stdout), expected


def test_the_exit_status_is_that_of_the_measurement_and_nothing_is_kept_of_a_quick_run() -> None:
    before = {file: file.stat().st_mtime_ns for file in (ROOT / "benchmarks" / "results").iterdir()}
    answer = record("timing_decisions", "--quick", "--no-such-option")

    assert answer.returncode == 2
    assert {file: file.stat().st_mtime_ns for file in (ROOT / "benchmarks" / "results").iterdir()} == before
