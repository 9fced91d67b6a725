"""A test skips for what a machine lacks, and fails where it skips for anything else."""

import os
import subprocess
import sys

import pytest

from autograder.host.sandbox import SandboxError
from tests import skips
from tests.architecture.source_tree import ROOT

PROCESSES = {"in one process": ["-p", "no:xdist"], "in two": ["-n", "2"]}
EXPECTED = """
import pytest

def test_a(): pytest.skip("needs a GPU: one of two")
def test_b(): pytest.skip("needs a GPU: the other")
@pytest.mark.skipif(True, reason="needs a browser")
def test_c(): pass
@pytest.mark.xfail(reason="known")
def test_d(): assert False
"""
IN_A_TEST = "import pytest\ndef test_a(): pytest.skip('no such package')\n"
IN_A_MARK = "import pytest\n@pytest.mark.skip(reason='not today')\ndef test_a(): pass\n"
IN_A_FIXTURE = "import pytest\n@pytest.fixture\ndef a(): pytest.skip('nothing set up')\ndef test_a(a): pass\n"
IN_A_FILE = "import pytest\npytest.importorskip('no_such_package')\ndef test_a(): pass\n"
OTHERS = {"test": IN_A_TEST, "mark": IN_A_MARK, "fixture": IN_A_FIXTURE, "file": IN_A_FILE}


@pytest.fixture(params=PROCESSES)
def run(request, tmp_path):
    """Return a function that runs a file of tests and returns status and lines."""

    def run(text: str) -> tuple[int, list[str]]:
        (tmp_path / "pytest.ini").write_text("[pytest]\n", encoding="utf-8")
        (tmp_path / "test_it.py").write_text(text, encoding="utf-8")
        command = [sys.executable, "-m", "pytest", "-p", "tests.skips", *PROCESSES[request.param], "test_it.py"]
        env = {**os.environ, "PYTHONPATH": str(ROOT)}
        done = subprocess.run(command, cwd=tmp_path, env=env, capture_output=True, text=True, check=False)
        return done.returncode, done.stdout.splitlines()

    return run


def test_the_last_lines_say_how_many_skip_and_why(run):
    status, lines = run(EXPECTED)

    assert status == 0, lines
    assert lines[-4:] == [
        "    1  needs a GPU: one of two",
        "    1  needs a GPU: the other",
        "    1  needs a browser",
        "Skipped 3 tests: needs a GPU: 2; needs a browser: 1.",
    ]


@pytest.mark.parametrize("text", OTHERS.values(), ids=OTHERS)
def test_any_other_skip_is_a_failure(run, text):
    status, lines = run(text)

    assert status != 0
    assert any(line.startswith("Skipped for a reason that tests may not have: ") for line in lines)
    assert lines[-1] == "Skipped no test."


@pytest.mark.parametrize(
    ("sentence", "reason"),
    [("No control group can be made here.", skips.KERNEL), ("they may not enter /home/a;", skips.PLACE)],
)
def test_a_level_that_a_machine_lacks_is_skipped(sentence, reason):
    with pytest.raises(pytest.skip.Exception, match=reason):
        skips.skip_level(SandboxError(f"Not here, because {sentence}"))


@pytest.mark.parametrize(
    "sentence",
    ["bubblewrap is missing.", "No control group can be made here. At level 2 student code could read the gradebook."],
)
def test_a_level_that_lets_attacks_through_or_could_be_installed_fails(sentence):
    with pytest.raises(SandboxError):
        skips.skip_level(SandboxError(sentence))
