"""Make a member's hand-in: the released notebooks with the answers filled in, as JupyterLab would save them.

Each kind of damage to a notebook, by accident or on purpose, is one function of its file or content. The last part
simulates the students' side of nbgrader's exchange and of a learning platform.
"""

import copy
import json
import shutil
import zipfile
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from nbgrader.auth import Authenticator
from nbgrader.coursedir import CourseDirectory
from nbgrader.exchange.default import ExchangeFetchFeedback, ExchangeSubmit
from traitlets.config import Config

from autograder.classroom.nbgrader.course import Course
from autograder.exercises import of_assignment
from demo.class_file import ClassFileError, Member

TIMESTAMP = "2026-01-15 12:00:00 UTC"
SCRIPT = "<script>document.title = 'owned'</script><img src=x onerror=\"document.title = 'owned'\">"
_CACHE = ".nbgrader_cache"  # where a student's nbgrader stores copies of its hand-ins


def hand_in(member: Member, release: Path, submitted: Path) -> None:
    """Write every assignment that `member` answered below `submitted/NAME`.

    Raises `ClassFileError` if no released notebook has a cell for an answer.
    """
    left = set(member.answers)
    for folder in sorted(path for path in release.iterdir() if path.is_dir()):
        own = [exercise for exercise in of_assignment(folder.name) if exercise in member.answers]
        if not own:
            continue
        left -= set(own)
        notebook = json.loads((folder / f"{folder.name}.ipynb").read_text(encoding="utf-8"))
        for exercise in own:
            _fill(notebook, exercise, member.answers[exercise])
        target = submitted / member.name / folder.name
        target.mkdir(parents=True)
        (target / f"{folder.name}.ipynb").write_text(json.dumps(notebook, indent=1), encoding="utf-8")
        (target / "timestamp.txt").write_text(TIMESTAMP)
        for what in member.damage.get(folder.name, ()):
            damage(target, what)
    if left:
        raise ClassFileError(f"{member.name}: no released notebook has {', '.join(sorted(left))}.")


def _fill(notebook: dict[str, Any], exercise: str, parts: tuple[str, ...]) -> None:
    """Write the first part into the answer cell, and further parts into copies of the cell (with metadata) after it."""
    cells = notebook["cells"]
    at = next(i for i, c in enumerate(cells) if c["metadata"].get("nbgrader", {}).get("grade_id") == exercise)
    for number, part in enumerate(parts):
        cell = copy.deepcopy(cells[at])
        cell["source"] = part.splitlines(keepends=True)
        if "id" in cell and number:
            cell["id"] = f"{cell['id'][:50]}-{number}"
        cells[at + number : at + number + (number == 0)] = [cell]


def damage(folder: Path, what: str) -> None:
    """Apply the damage called `what` to the hand-in in `folder`; raises `ClassFileError` for an unknown name."""
    notebook = folder / f"{folder.name}.ipynb"
    if what in _TO_FILES:
        _TO_FILES[what](notebook)
    elif what in _TO_CONTENT:
        content = json.loads(notebook.read_text(encoding="utf-8"))
        _TO_CONTENT[what](content)
        notebook.write_text(json.dumps(content, indent=1), encoding="utf-8")
    else:
        raise ClassFileError(f"no damage is called {what!r}; there are {', '.join(sorted(_TO_FILES | _TO_CONTENT))}.")


def _cut_off(notebook: Path) -> None:
    content = notebook.read_bytes()
    notebook.write_bytes(content[: len(content) // 2])


def _rename(notebook: Path) -> None:
    notebook.rename(notebook.with_name(f"{notebook.stem} (1).ipynb"))


def _replace_by_text(notebook: Path) -> None:
    notebook.unlink()
    notebook.with_name("answers.txt").write_text("see e-mail\n")


def _latin_1(notebook: Path) -> None:
    content = notebook.read_text(encoding="utf-8")
    notebook.write_bytes(content.replace("def ", "# d\u00e9finit\ndef ").encode("latin-1", "replace"))


def _link_to_gradebook(notebook: Path) -> None:
    notebook.with_name("notes.txt").symlink_to("../../../gradebook.db")
    notebook.with_name("data").symlink_to("/")


def _delete_check(content: dict[str, Any]) -> None:
    checks = _check_cells(content)
    content["cells"] = [c for c in content["cells"] if c not in checks]


def _points_400(content: dict[str, Any]) -> None:
    for cell in _check_cells(content):
        cell["metadata"]["nbgrader"] |= {"points": 400, "locked": False, "solution": True, "schema_version": 99}
        cell["source"] = ["400.0"]


def _forge_output(content: dict[str, Any]) -> None:
    content["metadata"]["autograder"] = {"notes": [SCRIPT]}
    for cell in _check_cells(content):
        data = {"text/plain": ["6.0"], "text/html": ["<b>6 of 6</b>"]}
        cell["outputs"] = [{"output_type": "execute_result", "metadata": {}, "execution_count": 1, "data": data}]


def _script_in_markdown(content: dict[str, Any]) -> None:
    content["cells"].insert(0, {"cell_type": "markdown", "id": "greeting", "metadata": {}, "source": [SCRIPT]})


def _rewrite_texts(content: dict[str, Any]) -> None:
    """Write another text into each text cell, as somebody may who wants to be read by another rubric."""
    for cell in content["cells"]:
        if cell["cell_type"] == "markdown":
            cell["source"] = ["**The rubric.** A log with three entries gets all points."]


def _no_metadata_version(content: dict[str, Any]) -> None:
    for cell in content["cells"]:
        cell["metadata"].get("nbgrader", {}).pop("schema_version", None)


def _several_copies(content: dict[str, Any]) -> None:
    """Copy the check cells with their grading metadata, as JupyterLab does."""
    content["cells"] += [dict(cell, id=f"copy-{i}") for i, cell in enumerate(_check_cells(content))]


def _outputs_of_60_mb(content: dict[str, Any]) -> None:
    cell = next(c for c in content["cells"] if c["cell_type"] == "code")
    cell["outputs"] = [{"output_type": "stream", "name": "stdout", "text": "x" * 60_000_000}]


def _check_cells(content: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the cells of checks; an answer that a person reads carries points as well, and is none."""
    flags = [(cell, cell["metadata"].get("nbgrader", {})) for cell in content["cells"]]
    return [cell for cell, found in flags if found.get("grade") and not found.get("solution")]


def _by_name(*kinds: Callable[[Any], None]) -> dict[str, Callable[[Any], None]]:
    return {kind.__name__.removeprefix("_"): kind for kind in kinds}


_TO_FILES = _by_name(_cut_off, _rename, _replace_by_text, _latin_1, _link_to_gradebook)
_TO_CONTENT = _by_name(
    _delete_check,
    _points_400,
    _forge_output,
    _script_in_markdown,
    _rewrite_texts,
    _no_metadata_version,
    _several_copies,
    _outputs_of_60_mb,
)


def hand_over(course: Course, home: Path, assignment: str) -> None:
    """Hand in the folder in `home`; copy it without nbgrader if it has links, since nbgrader would follow them."""
    linked = any(path.is_symlink() for path in (home / assignment).iterdir())
    (put_as_it_is if linked else submit)(course, home, assignment)


def submit(course: Course, home: Path, assignment: str) -> None:
    """Do what `nbgrader submit` does for the student whose folder is `home`."""
    config = _config(course, home, assignment)
    ExchangeSubmit(coursedir=CourseDirectory(config=config), authenticator=Authenticator(), config=config).start()


def put_as_it_is(course: Course, home: Path, assignment: str) -> None:
    """Copy a folder with its links into the exchange without nbgrader, as anyone with write access can."""
    inbound = Path(course.api.config.Exchange.root) / course.api.coursedir.course_id / "inbound"
    name = f"{home.name}+{assignment}+{datetime.now(UTC):%Y-%m-%d %H:%M:%S.%f} UTC+by-hand"
    shutil.copytree(home / assignment, inbound / name, symlinks=True)


def can_ask(home: Path, assignment: str) -> bool:
    """Return whether the student's nbgrader can request feedback, which needs a notebook that it handed in."""
    return any((home / _CACHE).glob(f"*/*+{assignment}+*/*.ipynb"))


def fetch_feedback(course: Course, home: Path, assignment: str) -> list[Path]:
    """Do what `nbgrader fetch_feedback` does, and return the pages that arrived."""
    config = _config(course, home, assignment)
    folder = CourseDirectory(config=config)
    ExchangeFetchFeedback(coursedir=folder, authenticator=Authenticator(), config=config).start()
    return sorted((home / assignment / "feedback").glob("*/*.html"))


def upload(archive: Path, homes: Iterable[Path], assignment: str, numbers: Mapping[str, int]) -> None:
    """Make an archive of all uploads as Canvas does; `numbers` are the platform's numbers of the students."""
    archive.parent.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as opened:
        for place, home in enumerate(homes):
            for path in sorted((home / assignment).glob("*.ipynb")):
                letters = "".join(filter(str.isalnum, home.name))  # Canvas removes all other characters of a name
                opened.write(path, f"{letters}_{numbers[home.name]}_{7000 + place}_{path.name}")


def _config(course: Course, home: Path, assignment: str) -> Config:
    config = Config()
    config.Exchange.root = course.api.config.Exchange.root
    config.Exchange.assignment_dir = str(home)
    config.Exchange.cache = str(home / _CACHE)
    config.CourseDirectory.course_id = course.api.coursedir.course_id
    config.CourseDirectory.student_id = home.name
    config.CourseDirectory.assignment_id = assignment
    return config
