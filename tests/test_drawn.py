"""One seed decides what a run draws, in one process and in several; nothing in tests draws from anywhere else."""

import os
import random
import re
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from tests import drawn, seeding
from tests.architecture.source_tree import ROOT

OTHER_SOURCES = re.compile(
    r"^(?:import|from) (?:secrets|uuid)\b|SystemRandom|urandom|TESTRUN" + "UID|Random[(][)]", re.M
)
# Each test leaves a file, named for the case that was drawn, with what the test and its fixtures drew.
TESTS = """
import random
from pathlib import Path

import pytest

from tests.drawn import chance, some

@pytest.fixture(scope="module", params=["a", "b"])
def wide(request): return random.random()
@pytest.fixture
def narrow(): return random.random()

@pytest.mark.parametrize("number", some(range(1000), 10, name="numbers"))
def test_it(number, wide, narrow, request):
    values = [wide, narrow, random.random(), chance("anything").random()]
    Path(request.node.name).write_text(f"{values}")

def test_that_fails(): assert False
"""


def run(folder: Path, *options: str, seed: str | None = None) -> tuple[dict[str, str], str]:
    """Run `TESTS` in a folder; return what each test drew, by its name, and what pytest printed."""
    folder.mkdir()
    (folder / "test_it.py").write_text(TESTS, encoding="utf-8")
    (folder / "pytest.ini").write_text("[pytest]\naddopts = -q\n", encoding="utf-8")
    env = {name: value for name, value in os.environ.items() if name not in (drawn.VARIABLE, "WHOLE")}
    env |= {"PYTHONPATH": str(ROOT)} | ({} if seed is None else {drawn.VARIABLE: seed})
    command = [sys.executable, "-m", "pytest", "-p", "tests.seeding", *options]
    done = subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True, check=False)
    return {
        file.name: file.read_text(encoding="utf-8") for file in folder.glob("test_it[[]*")
    }, done.stdout + done.stderr


def test_a_seed_repeats_a_run_with_and_without_other_processes(tmp_path):
    found, _ = run(tmp_path / "one", "-p", "no:xdist", seed="7")
    again, _ = run(tmp_path / "two", "-n", "2", "--dist", "worksteal", seed="7")
    other, _ = run(tmp_path / "other", "-p", "no:xdist", seed="8")

    assert len(found) == 20
    assert again == found
    assert set(other) != set(found)
    assert not set(other.values()) & set(found.values())


def test_a_run_without_a_seed_draws_one_and_says_how_it_is_repeated(tmp_path):
    found, printed = run(tmp_path / "first", "-n", "2")
    seeds = re.findall(rf"{drawn.VARIABLE}=(\d+)", printed)
    again, _ = run(tmp_path / "again", "-p", "no:xdist", seed=seeds[0])

    assert len(seeds) == 3, printed
    assert len(set(seeds)) == 1
    assert printed.startswith(f"{drawn.VARIABLE}={seeds[0]}\n")
    assert f"{drawn.VARIABLE}={seeds[0]} make test\n" in printed
    assert f"{drawn.VARIABLE}={seeds[0]} {sys.executable} -m pytest test_it.py::test_that_fails\n" in printed
    assert again == found


def test_each_run_draws_another_seed(monkeypatch):
    seeds = set()
    for _ in range(4):
        monkeypatch.delenv(drawn.VARIABLE, raising=False)
        seeds.add(drawn.run_seed())

    assert len(seeds) > 1


@pytest.mark.parametrize("seed", ["", "x", "-1", "1.5", "9" * 19])
def test_what_is_no_seed_is_refused_in_one_sentence(monkeypatch, seed):
    monkeypatch.setenv(drawn.VARIABLE, seed)
    with pytest.raises(pytest.UsageError, match=rf"^{drawn.VARIABLE} is '{seed}'; it is a whole number [^.]*\.$"):
        seeding.pytest_configure()


def test_a_run_with_what_is_no_seed_tries_nothing(tmp_path):
    found, printed = run(tmp_path / "run", seed="x")

    assert found == {}
    assert printed == f"ERROR: {drawn.VARIABLE} is 'x'; it is a whole number of at most 18 digits, such as 7.\n\n"


def test_the_shared_generators_are_seeded_by_name():
    draws = []
    for name in ("a", "b", "a"):
        seeding.seed_generators(name)
        draws.append((random.random(), torch.rand(2).tolist()))

    assert draws[0] == draws[2]
    assert draws[0][0] != draws[1][0]
    assert draws[0][1] != draws[1][1]


def test_the_whole_is_tried_if_asked_for(monkeypatch):
    monkeypatch.setenv("WHOLE", "1")

    assert drawn.some("abc", 1, name="letters") == ["a", "b", "c"]


def test_no_other_source_of_chance_is_in_tests():
    files = [path for path in ROOT.glob("tests/**/*.py") if not path.is_relative_to(ROOT / "tests" / "submissions")]
    found = [str(path.relative_to(ROOT)) for path in files if OTHER_SOURCES.search(path.read_text(encoding="utf-8"))]

    without_state = "tests/course_lib/fusion/test_outside_of_fuse.py"  # a generator of this kind; it gives a constant
    assert sorted(found) == [without_state, "tests/drawn.py", "tests/test_drawn.py"]


@pytest.mark.parametrize("text", ["import secrets\n", "random.SystemRandom()", "Random()", "from uuid import uuid4"])
def test_the_search_sees_another_source(text):
    assert OTHER_SOURCES.search(text)
