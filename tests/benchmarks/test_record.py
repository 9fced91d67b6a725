"""Each measurement has a quick run that shows all of it, and what is printed is kept with the machine."""

import os
import re
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import benchmarks.record
from benchmarks.record import main, measurements
from tests.architecture.source_tree import ROOT
from tests.autograder.host.forked_command import fork_command

# A measurement, and what its quick run prints.
QUICK = {
    "backend_launches": (r"feed_forward +\d+ → \d+", r"bert_layer, backward", r"spills +reloads\n +4 +4"),
    "attack_suite": ("no attack succeeded", r"\d+ passed", r"strongest level here +\d"),
    "capture_comparison": ("The gallery", "Our models", r"perceptron +✓", "✗ silently wrong"),
    "timing_decisions": (r"loaded .*compute", "idle: 0|idle: [1-9]", "wrongly failed", "95 % confidence"),
    "fusion_passes": (r"bias_gelu +2 → 1", r"sdpa", r"layers +nodes +fused", r"\n +2 +\d+ +\d+"),
}


class Forked:
    """Stands for a process of `subprocess.Popen`: a fork, which has imported what a measurement imports."""

    def __init__(self, command: Sequence[str], *, cwd: Path, **others: object) -> None:
        self._forked = fork_command(command[1:], cwd, os.environ)
        self.stdout = self._forked.output
        self.returncode = -1

    def __enter__(self) -> "Forked":
        return self

    def __exit__(self, *error: object) -> None:
        self.returncode, _ = self._forked.finish()


def record(monkeypatch: pytest.MonkeyPatch, *arguments: str) -> int:
    """Run the command in this process, and the measurement in one of its own, as always; return the exit status."""
    monkeypatch.setattr(sys, "argv", ["record", *arguments])
    return main()


@pytest.fixture
def forked(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have measurements be forks of this process, and the tests that a measurement starts forks of that."""
    import torch._dynamo  # noqa: F401  # once for all of them

    monkeypatch.setattr(benchmarks.record, "subprocess", SimpleNamespace(Popen=Forked, PIPE=subprocess.PIPE))
    cold = subprocess.run

    def run(command: Sequence[str], **others: Any) -> subprocess.CompletedProcess[str]:
        if list(command[1:3]) != ["-m", "pytest"]:
            return cold(command, **others)
        status, printed = fork_command(command[1:], others["cwd"], os.environ).finish()
        return subprocess.CompletedProcess(command, status, printed)

    monkeypatch.setattr(subprocess, "run", run)


def test_what_is_offered_is_what_the_makefile_runs_and_the_readme_lists() -> None:
    makefile, readme = ((ROOT / name).read_text(encoding="utf-8") for name in ("Makefile", "README.md"))
    table = readme.split("\n## Measurements\n")[1].split("\n## ")[0]

    assert set(measurements()) == set(re.findall(r"benchmarks\.record (\w+)", makefile))
    assert set(measurements()) == set(re.findall(r"^\|.*\| \[?(\w+)(?:\]|,| \|)", table, re.MULTILINE)) - {"name"}
    assert not {"record", "gpu_check", "kernel_cases", "kernel_times"} & set(measurements())


@pytest.mark.usefixtures("forked")
@pytest.mark.parametrize("name", QUICK)
def test_a_quick_run_prints_its_tables_and_is_kept_with_the_machine(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert record(monkeypatch, name, "--quick", "--results", str(tmp_path)) == 0

    printed = capsys.readouterr().out
    kept = (tmp_path / f"{name}.md").read_text(encoding="utf-8")
    assert f"`python -m benchmarks.record {name} --quick`" in kept
    assert re.search(r"^- .*\d+ cores, torch threads: 1.*load \d", kept, re.MULTILINE)
    assert re.search(r"^- .*Python 3\..*torch 2\.", kept, re.MULTILINE)
    assert re.search(r"^- load when it ended: \d+\.\d; exit status 0$", kept, re.MULTILINE)
    for expected in QUICK[name]:
        assert re.search(expected, kept), expected
        assert re.search(expected, printed), expected


def test_the_exit_status_is_that_of_the_measurement_and_nothing_is_kept_of_a_quick_run(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    before = {file: file.stat().st_mtime_ns for file in (ROOT / "benchmarks" / "results").iterdir()}

    assert record(monkeypatch, "timing_decisions", "--quick", "--no-such-option") == 2
    assert {file: file.stat().st_mtime_ns for file in (ROOT / "benchmarks" / "results").iterdir()} == before


def test_a_part_of_a_measurement_is_kept_under_a_name_of_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(benchmarks.record, "run", lambda name, arguments: (0, " ".join([name, *arguments])))

    assert record(monkeypatch, "speed_verdicts", "--part", "idle", "--only", "idle", "--results", str(tmp_path)) == 0

    kept = (tmp_path / "speed_verdicts-idle.md").read_text(encoding="utf-8")
    assert "`python -m benchmarks.record speed_verdicts --part idle --only idle`" in kept
    assert "speed_verdicts --only idle\n```" in kept
