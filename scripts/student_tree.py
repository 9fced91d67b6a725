"""Copy what students may have into a folder: student_tree.py FOLDER, after `make release`.

FOLDER/course             course_lib, the autograder without its hidden cases, and the settings of JupyterLab
FOLDER/notebooks          the released notebooks, without solutions
FOLDER/fingerprints.json  lines that stand only in solutions and hidden cases, for scripts/image_check.py
"""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path

from autograder.host.nbgrader.leaks import Fingerprint, fingerprints, secret_fingerprints

ROOT = Path(__file__).resolve().parents[1]
RELEASED = ROOT / "work" / "release"
HIDDEN = ROOT / "autograder" / "host" / "hidden"
CODE = ("course_lib", "autograder")
PAPERS = ("pyproject.toml", "constraints.txt", "README.md", "LICENSE", "LICENSE-notebooks")


def open_texts() -> set[str]:
    """Return what looks like a fingerprint and stands in code that students get anyway."""
    files = (path for folder in CODE for path in (ROOT / folder).rglob("*.py") if HIDDEN not in path.parents)
    return {one.text for path in files for one in fingerprints(path.read_text("utf-8").splitlines(), path.name)}


def secrets() -> list[Fingerprint]:
    """Return the fingerprints of all solutions and hidden cases, without those that stand in open code too."""
    known = open_texts()
    return [secret for secret in secret_fingerprints(ROOT / "notebooks", HIDDEN) if secret.text not in known]


def copy_code(folder: Path) -> None:
    """Copy the code that students get into `folder`."""
    for name in CODE:
        ignore = shutil.ignore_patterns("hidden", "__pycache__")
        shutil.copytree(ROOT / name, folder / name, ignore=ignore)
    shutil.copytree(ROOT / "scripts" / "student_lab", folder / "student_lab")
    for name in PAPERS:
        shutil.copy(ROOT / name, folder / name)


def write_fingerprints(path: Path) -> None:
    """Write the secrets as a JSON object from the text to where it is from."""
    found = {secret.text: secret.origin for secret in secrets()}
    path.write_text(json.dumps(found, indent=1), encoding="utf-8")
    print(f"{len(found)} fingerprints of solutions and hidden cases")


def main(folder: Path) -> None:
    """Fill `folder`, which must not exist yet."""
    copy_code(folder / "course")
    shutil.copytree(RELEASED, folder / "notebooks")
    write_fingerprints(folder / "fingerprints.json")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
