"""Copy all files for students into a folder: student_tree.py FOLDER, after `make release`.

FOLDER/course             course_lib, the part of the autograder for practice, the settings of JupyterLab, and
                          course.toml with the list of notebooks;
                          questions that checks ask, with their answers, in place of the functions that know them
FOLDER/notebooks          the released notebooks, without solutions
FOLDER/fingerprints.json  lines that occur only in solutions and hidden cases, for scripts/image_check.py
"""

import json
import re
import shutil
import sys
from pathlib import Path

from autograder.classroom.nbgrader.leaks import Fingerprint, fingerprints, secret_fingerprints
from autograder.course_settings import read_settings, settings_file
from autograder.exercises.lessons import LESSONS
from autograder.exercises.quality.question_tables import write_tables
from autograder.exercises.questions import SHIPPED

ROOT = Path(__file__).resolve().parents[1]
RELEASED = ROOT / "work" / "release"
HIDDEN = ROOT / "autograder" / "exercises" / "hidden"
# Only what students install: a package that is not listed here is for instructors only.
CODE = (
    "course_lib",
    "autograder/__init__.py",
    "autograder/course_settings.py",
    "autograder/protocol",
    "autograder/worker",
    "autograder/host",
    "autograder/practice",
    "autograder/exercises/__init__.py",
    "autograder/exercises/answer_cells.py",
    "autograder/exercises/cell_text.py",
    "autograder/exercises/lessons.py",
    "autograder/exercises/registry.py",
    "autograder/exercises/programs",
    "autograder/exercises/questions.py",
    "autograder/exercises/setup_cells.py",
    *(f"autograder/exercises/{lesson}" for lesson in LESSONS.values()),
)
PAPERS = ("pyproject.toml", "constraints.txt", "README.md", "LICENSE", "LICENSE-notebooks")


def code_files() -> list[Path]:
    """Return the files of the code that students get."""
    found = (path for name in CODE for path in (ROOT / name).rglob("*") if (ROOT / name).is_dir())
    files = [path for path in found if path.is_file() and "__pycache__" not in path.parts]
    return files + [ROOT / name for name in CODE if (ROOT / name).is_file()]


def open_texts() -> set[str]:
    """Return all fingerprints in code that students get."""
    return {one.text for path in code_files() for one in fingerprints(path.read_text("utf-8").splitlines(), path.name)}


def secrets() -> list[Fingerprint]:
    """Return the fingerprints of all solutions and hidden cases, except those that are also in the students' code."""
    known = open_texts()
    return [secret for secret in secret_fingerprints(ROOT / "notebooks", HIDDEN) if secret.text not in known]


def copy_code(folder: Path) -> None:
    """Copy the code that students get into `folder`."""
    for path in code_files():
        copy = folder / path.relative_to(ROOT)
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(path, copy)
    shutil.copytree(ROOT / "scripts" / "student_lab", folder / "student_lab")
    for name in PAPERS:
        shutil.copy(ROOT / name, folder / name)
    notebooks = read_settings(settings_file(ROOT)).notebooks
    (folder / "course.toml").write_text(f"notebooks = {list(notebooks)}\n", "utf-8")
    (folder / "pyproject.toml").write_text(without_scripts((ROOT / "pyproject.toml").read_text("utf-8")), "utf-8")


def without_scripts(pyproject: str) -> str:
    """Return the text of pyproject.toml without its commands, which are for instructors."""
    return re.sub(r"(?ms)^\[project\.scripts\]\n.*?(?=^\[)", "", pyproject)


def write_fingerprints(path: Path) -> None:
    """Write the secrets as a JSON object that maps each text to its origin."""
    found = {secret.text: secret.origin for secret in secrets()}
    path.write_text(json.dumps(found, indent=1), encoding="utf-8")
    print(f"{len(found)} fingerprints of solutions and hidden cases")


def main(folder: Path) -> None:
    """Fill `folder`, which must not exist yet."""
    copy_code(folder / "course")
    size = write_tables(folder / "course" / SHIPPED.relative_to(ROOT))
    print(f"{size:,} bytes of questions with their answers")
    shutil.copytree(RELEASED, folder / "notebooks")
    write_fingerprints(folder / "fingerprints.json")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
