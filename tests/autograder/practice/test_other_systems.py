"""`check` on macOS, and its sentence on Windows: both simulated, by hiding what these systems lack."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from autograder.exercises import find
from autograder.exercises.quality.controls import controls
from autograder.host.exercise import REFERENCE, Kind
from tests.autograder.wrong_answers import OF_KINDS
from tests.drawn import some

COURSE = Path(__file__).parents[3]
TRIED = some(list(OF_KINDS), 3, name="kinds on macOS")
ON_MACOS = """
import json, linecache, sys
from pathlib import Path
import torch

sys.path.insert(0, sys.argv[1])
from tests import other_systems

other_systems.hide_macos()
from autograder.exercises import find
from autograder.host.sandbox import interpreter, plain
from autograder.practice import check

hiding = Path(other_systems.__file__).read_text() + "\\nhide_macos()\\n"
usual = interpreter.interpreter_arguments

def without(*given, **named):
    *options, bootstrap, numbers, program = usual(*given, **named)
    return [*options, hiding + bootstrap, numbers, program]

plain.interpreter_arguments = without
other_systems.call_it_macos("autograder", "course_lib")
found = {}
for name, exercise, text in json.loads(Path("answers.json").read_text()):
    file = f"/tmp/ipykernel_1/{len(found)}.py"
    linecache.cache[file] = (len(text), None, text.splitlines(keepends=True), file)
    names = {}
    exec(find(exercise).setup, names)
    exec(compile(text, file, "exec"), names)
    score = check(exercise, names[find(exercise).entry_point])
    found[name] = [float(score), score.record.status, score.record.speed is not None, str(score)]
Path("found.json").write_text(json.dumps(found))
"""
ON_WINDOWS = """
import sys
import torch

sys.path.insert(0, sys.argv[1])
from tests import other_systems

other_systems.hide_windows()
exec(sys.argv[2])
"""


def run(program: str, *arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    """Run a program of its own in `cwd`, with the state of the practice there."""
    return subprocess.run(
        [sys.executable, "-c", program, str(COURSE), *arguments],
        cwd=cwd,
        env=os.environ | {"XDG_STATE_HOME": str(cwd)},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.fixture(scope="module")
def on_macos(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """Check a right and a wrong answer of each kind in one process without what macOS lacks."""
    place = tmp_path_factory.mktemp("macos")
    (place / "course.toml").write_text('device = "cpu"\n')
    answers = []
    for exercise in TRIED:
        wrong = OF_KINDS[exercise]
        of_name = {control.name: control.answer for control in controls(exercise)}
        answers += [(f"{exercise} {kind}", exercise, of_name[kind]) for kind in (REFERENCE, wrong)]
    (place / "answers.json").write_text(json.dumps(answers))
    done = run(ON_MACOS, cwd=place)
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads((place / "found.json").read_text())
    return found


def test_every_kind_but_that_of_triton_is_tried() -> None:  # Triton has no wheel for macOS
    assert {find(exercise).kind for exercise in OF_KINDS} == set(Kind) - {Kind.TRITON}


@pytest.mark.slow
@pytest.mark.parametrize("exercise", TRIED)
def test_check_gives_the_right_marks_without_what_macos_lacks(exercise: str, on_macos: dict[str, Any]) -> None:
    full = round(sum(c.points for c in find(exercise).checks), 6)
    right, status, timed, said = on_macos[f"{exercise} {REFERENCE}"]
    assert (right, status) == (full, "graded"), said
    assert timed == (find(exercise).speed is not None)
    assert "your code ran unprotected" in said

    wrong, status, _, said = on_macos[f"{exercise} {OF_KINDS[exercise]}"]
    assert wrong < full, said
    assert status not in ("grader_error", "not_found"), said


def test_practice_on_windows_ends_in_one_sentence_that_names_the_image(tmp_path: Path) -> None:
    for line in ("from autograder.practice import hint", "from autograder.classroom.start import main"):
        done = run(ON_WINDOWS, line, cwd=tmp_path)
        assert done.returncode == 1
        last = done.stderr.strip().splitlines()[-1]
        assert last.startswith("ImportError: The grader needs Linux or macOS"), done.stderr
        assert "Docker image or in WSL2" in last


def test_every_module_of_the_library_imports_on_windows(tmp_path: Path) -> None:
    modules = [
        ".".join(path.relative_to(COURSE).with_suffix("").parts)
        for path in sorted((COURSE / "course_lib").rglob("*.py"))
        if path.name != "__init__.py"
    ]
    done = run(ON_WINDOWS, f"import importlib\nlist(map(importlib.import_module, {modules}))", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
