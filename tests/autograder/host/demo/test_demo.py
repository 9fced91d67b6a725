"""The demonstration end to end on a small class: a killed one is taken up again, and a wrong mark ends non-zero."""

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[4]
ANSWER = "# %% answer 04_read_a_graph = {marks}\ndef read_graph(rows):\n    return {{}}\n"


def demo(tmp_path: Path) -> "subprocess.Popen[str]":
    places = ["--work", tmp_path / "work", "--class", tmp_path / "class", "--report", tmp_path / "report"]
    command = [sys.executable, "-m", "autograder.host.demo", *map(str, places)]
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "PATH": os.defpath}
    return subprocess.Popen(
        command, cwd=ROOT, env=environment, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    )


def add(tmp_path: Path, kind: str, name: str, text: str) -> None:
    (tmp_path / "class" / kind).mkdir(parents=True, exist_ok=True)
    (tmp_path / "class" / kind / f"{name}.py").write_text(f'"""About."""\n{text}')


def seed_in(output: str) -> str:
    return re.findall(r"fingerprint is (\w{8})", output)[0]


@pytest.mark.slow
def test_a_killed_demonstration_goes_on_and_a_finished_one_starts_afresh(tmp_path: Path) -> None:
    for number in range(4):
        add(tmp_path, "mistaken", f"modest_{number}", ANSWER.format(marks=0))
    first = demo(tmp_path)
    assert first.stdout is not None
    said = ""
    for line in first.stdout:
        said += line
        if line.startswith("Grade 1/"):
            break
    first.send_signal(signal.SIGKILL)
    first.communicate()
    written = (tmp_path / "work" / "journal.jsonl").read_bytes().count(b"\n")
    assert written >= 1

    second = demo(tmp_path)
    again, _ = second.communicate(timeout=300)
    assert second.returncode == 0, again
    assert f"going on with {written} records from its journal" in again
    assert f"{written} records were taken from the journal" in again
    assert seed_in(again) == seed_in(said)
    lines = (tmp_path / "work" / "journal.jsonl").read_bytes().splitlines()
    assert len(lines) == len(set(lines)) == 4

    third, _ = (process := demo(tmp_path)).communicate(timeout=300)
    assert process.returncode == 0, third
    assert "journal of the interrupted run" not in third
    assert seed_in(third) != seed_in(said)


@pytest.mark.slow
def test_a_mark_that_differs_from_the_stated_one_ends_non_zero(tmp_path: Path) -> None:
    add(tmp_path, "honest", "too_proud", ANSWER.format(marks=6))
    add(tmp_path, "mistaken", "modest", ANSWER.format(marks=0))
    process = demo(tmp_path)
    output, _ = process.communicate(timeout=300)
    assert process.returncode == 1, output
    wrong = [line for line in output.splitlines() if line.startswith("DIFFERENT")]
    assert len(wrong) == 2
    assert all("too_proud" in line for line in wrong)
    assert (tmp_path / "report" / "index.html").exists()
