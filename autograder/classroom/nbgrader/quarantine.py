"""Make submitted/ safe to read: ordinary files of expected names stay, everything else goes to a quarantine folder.

nbgrader copies every file of a submission and follows links, so a link to the gradebook would be returned to the
student with the feedback. nbgrader also ignores a submission without a notebook of the right name. Here it gets an
empty notebook, which the grader reports, so that the student is in gradebook, CSV and report. Moved files keep their
bytes. Links are replaced by a text.
"""

import os
import re
import stat
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from nbgrader.utils import parse_utc

from autograder.classroom.hand_in import nothing_handed_in
from autograder.classroom.notes import notes_for, other_names, write_notes

# nbgrader finds folders by glob, so a name must not be a pattern; it must not look like a command-line option either
STUDENT = re.compile(r"\w[\w.@+ -]{0,99}")
TIMESTAMP = "timestamp.txt"
SECRET = "submission_secret.txt"  # a student finds the feedback in nbgrader's exchange with it
KEPT = (TIMESTAMP, SECRET)
FOLDER = "aside"  # name of the quarantine folder, beside submitted/
QUIET = {".ipynb_checkpoints", ".DS_Store", "__MACOSX", "Thumbs.db"}  # files that tools create; moved without a message


@dataclass(frozen=True)
class Correction:
    """A sentence about one correction of a folder."""

    student: str
    assignment: str
    sentence: str


def correct_submissions(submitted: Path, quarantine: Path, assignments: Iterable[str]) -> list[Correction]:
    """Correct all folders in `submitted`, move unexpected files below `quarantine`, and return the corrections."""
    done: list[Correction] = []
    known = tuple(assignments)
    for folder in sorted(submitted.iterdir()) if submitted.is_dir() else ():
        if not _is(folder, stat.S_ISDIR) or not STUDENT.fullmatch(folder.name):
            _move(folder, quarantine / "_foreign")
            sentence = f"{folder.name!r:.80} is not a student's folder; it was put aside."
            done.append(Correction(folder.name, "", sentence))
            continue
        for name in known:
            if (folder / name).is_symlink() or (folder / name).exists():
                done += [Correction(folder.name, name, sentence) for sentence in _correct(folder / name, quarantine)]
    return done


def before_autograde(*, assignment: str, student: str, notebooks: list[str]) -> None:
    """Move files out of one submission that nbgrader must not copy or follow; nbgrader calls this hook.

    Notebooks stay as they are, since nbgrader has listed them already; links among them are not followed.
    """
    folder = Path(notebooks[0]).parent
    work = folder.parents[2]
    for _ in _foreign_files(folder, work / FOLDER / folder.parent.name / folder.name, keep_notebooks=True):
        pass


def _correct(folder: Path, quarantine: Path) -> list[str]:
    kept = quarantine / folder.parent.name / folder.name
    if not _is(folder, stat.S_ISDIR):
        _move(folder, kept)
        folder.mkdir()
    notebook = folder / f"{folder.name}.ipynb"
    earlier, names = notes_for(notebook, quarantine), other_names(notebook, quarantine) or _misnamed(notebook)
    sentences = [*_renamed(notebook), *_foreign_files(folder, kept), *_bad_timestamp(folder, kept)]
    if not notebook.exists():
        notebook.touch()
        sentences.append(nothing_handed_in(notebook))
    if sentences:
        write_notes(notebook, quarantine, (*earlier, *sentences), names)
    return sentences


def _foreign_files(folder: Path, kept: Path, *, keep_notebooks: bool = False) -> Iterator[str]:
    """Move away all files except the notebook and nbgrader's own; yield a sentence for each one not in `QUIET`."""
    for path in sorted(folder.iterdir()):
        is_notebook = path.suffix == ".ipynb" if keep_notebooks else path.name == f"{folder.name}.ipynb"
        plain = _is(path, stat.S_ISREG) and path.lstat().st_nlink == 1
        if (is_notebook and (plain or keep_notebooks)) or (path.name in KEPT and plain):
            continue
        kind = _kind(path)
        _move(path, kept)
        if path.name not in QUIET:
            yield f"{path.name!r:.80} ({kind}) is not part of the submission; it was put aside."


def _misnamed(notebook: Path) -> list[str]:
    """Return the names of the other notebooks in the folder if `notebook` does not exist; otherwise an empty list."""
    if notebook.exists() or notebook.is_symlink():
        return []
    return [p.name for p in notebook.parent.glob("*.ipynb") if _is(p, stat.S_ISREG) and p.lstat().st_nlink == 1]


def _renamed(notebook: Path) -> Iterator[str]:
    """Rename the only notebook in the folder to the expected name; browsers sometimes change the name."""
    others = _misnamed(notebook)
    if len(others) == 1:
        notebook.with_name(others[0]).rename(notebook)
        yield f"The notebook was handed in as {others[0]!r:.80}; it was graded as {notebook.name}."


def _bad_timestamp(folder: Path, kept: Path) -> Iterator[str]:
    path = folder / TIMESTAMP
    if not path.exists():
        return
    text = path.read_bytes()[:100].decode("utf-8", "replace").strip()
    try:
        parse_utc(text)
    except (ValueError, OverflowError, TypeError):
        _move(path, kept)
        yield f"{TIMESTAMP} held no time ({text!r:.60}); the submission counts as handed in on time."


def _move(path: Path, folder: Path) -> None:
    """Move `path` itself, never its link target, to a new name, and replace links in it by texts."""
    folder.mkdir(parents=True, exist_ok=True)
    kept = path.rename(folder / f"{time.time_ns()}~{path.name}")
    if _is(kept, stat.S_ISDIR):
        for place, folders, files in os.walk(kept):
            for name in (*folders, *files):
                _replace_link(Path(place, name))
    else:
        _replace_link(kept)


def _replace_link(path: Path) -> None:
    """Replace a link, pipe or device by a text, since tools that walk folders follow links."""
    if _is(path, stat.S_ISREG) or _is(path, stat.S_ISDIR):
        return
    was = _kind(path)
    path.unlink()
    path.write_text(f"Here was {was}.\n")


def _is(path: Path, kind: Callable[[int], bool]) -> bool:
    """Return whether `path` itself, not its link target, is of this kind; False for a path that does not exist."""
    try:
        return kind(path.lstat().st_mode)
    except FileNotFoundError:
        return False


def _kind(path: Path) -> str:
    mode = path.lstat().st_mode
    if stat.S_ISLNK(mode):
        return f"a link to {str(path.readlink())!r:.80}"
    if stat.S_ISDIR(mode):
        return "a folder"
    if not stat.S_ISREG(mode):
        return "not a regular file"
    return "a file with a second name elsewhere" if path.lstat().st_nlink > 1 else "another file"
