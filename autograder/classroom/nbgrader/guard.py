"""Make submitted/ safe to read: ordinary files of expected names stay, everything else is put aside, byte for byte.

nbgrader copies every file of a submission and follows links, so a link to the gradebook would come back to its sender
with the feedback. And a submission without a notebook of the right name appears nowhere; here it gets an empty one,
which the grader reports as such, so that its student stands in gradebook, CSV and report.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import stat
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from nbgrader.utils import parse_utc

from autograder.classroom.batch import nothing_handed_in

# nbgrader looks folders up by glob, so a name must not be a pattern; and it must not look like an option
STUDENT = re.compile(r"\w[\w.@+ -]{0,99}")
TIMESTAMP = "timestamp.txt"
SECRET = "submission_secret.txt"  # by which a student finds the feedback in nbgrader's exchange
KEPT = (TIMESTAMP, SECRET)
QUIET = {".ipynb_checkpoints", ".DS_Store", "__MACOSX", "Thumbs.db"}  # what tools leave behind
NOTES = "notes.json"


@dataclass(frozen=True)
class Guarded:
    """One thing that was set right."""

    student: str
    assignment: str
    sentence: str


def guard_submissions(submitted: Path, aside: Path, assignments: Iterable[str]) -> list[Guarded]:
    """Set right everything in ``submitted``, keep what is taken out below ``aside``, and say what was done."""
    done: list[Guarded] = []
    known = tuple(assignments)
    for folder in sorted(submitted.iterdir()) if submitted.is_dir() else ():
        if not _is(folder, stat.S_ISDIR) or not STUDENT.fullmatch(folder.name):
            _put_aside(folder, aside / "_foreign")
            done.append(Guarded(folder.name, "", f"{folder.name!r:.80} is not a student's folder; it was put aside."))
            continue
        for name in known:
            if (folder / name).is_symlink() or (folder / name).exists():
                done += [Guarded(folder.name, name, sentence) for sentence in _guard_one(folder / name, aside)]
    return done


def before_autograde(*, assignment: str, student: str, notebooks: list[str]) -> None:
    """nbgrader's hook before it copies one submission: take out what it must not copy or follow.

    Notebooks stay as they are, since nbgrader has listed them already; `reading` refuses links among them.
    """
    folder = Path(notebooks[0]).parent
    work = folder.parents[2]
    for _ in _foreign_files(folder, work / "aside" / folder.parent.name / folder.name, keep_notebooks=True):
        pass


def notes_for(notebook: Path, aside: Path) -> tuple[str, ...]:
    """What `guard_submissions` noted about this very notebook; nothing if another one was handed in since."""
    return tuple(_noted(notebook, aside)["notes"])


def other_names(notebook: Path, aside: Path) -> tuple[str, ...]:
    """How the files are called that were handed in where this very notebook should have been; none if it was there."""
    return tuple(_noted(notebook, aside)["names"])


def note(notebook: Path, aside: Path, sentences: Iterable[str], names: Iterable[str] = ()) -> None:
    """Write down what there is to say of this very notebook, in place of what was noted before."""
    noted = {"sha256": _sha256(notebook), "notes": list(sentences), "names": list(names)}
    _notes_file(notebook, aside).parent.mkdir(parents=True, exist_ok=True)
    _notes_file(notebook, aside).write_text(json.dumps(noted))


def _guard_one(folder: Path, aside: Path) -> list[str]:
    kept = aside / folder.parent.name / folder.name
    if not _is(folder, stat.S_ISDIR):
        _put_aside(folder, kept)
        folder.mkdir()
    notebook = folder / f"{folder.name}.ipynb"
    earlier = _noted(notebook, aside)
    names = earlier["names"] or _misnamed(notebook)
    sentences = [*_renamed(notebook), *_foreign_files(folder, kept), *_bad_timestamp(folder, kept)]
    if not notebook.exists():
        notebook.touch()
        sentences.append(nothing_handed_in(notebook))
    if sentences:
        note(notebook, aside, (*earlier["notes"], *sentences), names)
    return sentences


def _foreign_files(folder: Path, kept: Path, *, keep_notebooks: bool = False) -> Iterator[str]:
    """Put aside what is neither the notebook nor nbgrader's own, with a sentence for each that matters to a person."""
    for path in sorted(folder.iterdir()):
        is_notebook = path.suffix == ".ipynb" if keep_notebooks else path.name == f"{folder.name}.ipynb"
        plain = _is(path, stat.S_ISREG) and path.lstat().st_nlink == 1
        if (is_notebook and (plain or keep_notebooks)) or (path.name in KEPT and plain):
            continue
        kind = _kind(path)
        _put_aside(path, kept)
        if path.name not in QUIET:
            yield f"{path.name!r:.80} ({kind}) is not part of the submission; it was put aside."


def _misnamed(notebook: Path) -> list[str]:
    """The names of all notebooks beside the place of this one, if that is empty."""
    if notebook.exists() or notebook.is_symlink():
        return []
    return [p.name for p in notebook.parent.glob("*.ipynb") if _is(p, stat.S_ISREG) and p.lstat().st_nlink == 1]


def _renamed(notebook: Path) -> Iterator[str]:
    """Give the only notebook of another name, as browsers make them, the name that it should have."""
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
        _put_aside(path, kept)
        yield f"{TIMESTAMP} held no time ({text!r:.60}); the submission counts as handed in on time."


def _put_aside(path: Path, folder: Path) -> None:
    """Move ``path`` itself, never what it points to, under a name that cannot meet another, with its links defused."""
    folder.mkdir(parents=True, exist_ok=True)
    kept = path.rename(folder / f"{time.time_ns()}~{path.name}")
    if _is(kept, stat.S_ISDIR):
        for place, folders, files in os.walk(kept):
            for name in (*folders, *files):
                _defuse(Path(place, name))
    else:
        _defuse(kept)


def _defuse(path: Path) -> None:
    """Put a text in the place of a link, pipe or device, since tools that walk folders follow links."""
    if _is(path, stat.S_ISREG) or _is(path, stat.S_ISDIR):
        return
    was = _kind(path)
    path.unlink()
    path.write_text(f"Here was {was}.\n")


def _is(path: Path, kind: Callable[[int], bool]) -> bool:
    """Ask for the kind of ``path`` itself, not of what it points to; what is not there is of no kind."""
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


def _noted(notebook: Path, aside: Path) -> dict[str, list[str]]:
    """The lists that `note` wrote down about this very notebook; empty ones if it was another."""
    nothing: dict[str, list[str]] = {"notes": [], "names": []}
    try:
        noted = json.loads(_notes_file(notebook, aside).read_text())
    except (OSError, ValueError):
        return nothing
    return nothing | noted if noted["sha256"] == _sha256(notebook) else nothing


def _notes_file(notebook: Path, aside: Path) -> Path:
    return aside / notebook.parent.parent.name / notebook.parent.name / NOTES


def _sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest() if _is(path, stat.S_ISREG) else ""
