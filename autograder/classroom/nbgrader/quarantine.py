"""Make submitted/ safe to read: ordinary files of expected names stay, everything else goes to a quarantine folder.

nbgrader copies every file of a submission and follows links, so a link to the gradebook would be returned to the
student with the feedback. nbgrader also ignores a submission without a notebook of the right name. Here it gets an
empty notebook, which the grader reports, so that the student is in gradebook, CSV and report. Moved files keep their
bytes. Links are replaced by a text.
"""

import contextlib
import os
import re
import stat
import time
import unicodedata
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from autograder.classroom.assistants import FOR_ASSISTANTS
from autograder.classroom.hand_in import nothing_handed_in
from autograder.classroom.notes import notes_for, other_names, write_notes
from autograder.classroom.term.which_counts import TIMESTAMP, small_text, time_of

# nbgrader finds folders by glob, so a name must not be a pattern; it must not look like a command-line option either;
# nbgrader strips spaces at the end of a name, and then does not find the folder
STUDENT = re.compile(r"\w(?:[\w.@+ -]{0,98}[\w.@+-])?")
SECRET = "submission_secret.txt"  # a student finds the feedback in nbgrader's exchange with it
KEPT = (TIMESTAMP, SECRET)
FOLDER = "aside"  # name of the quarantine folder, beside submitted/
NAME_BYTES = 200
_FOREIGN = "_foreign"  # in the quarantine folder: what lay in submitted/ and was no student's folder
QUIET = {".ipynb_checkpoints", ".DS_Store", "__MACOSX", "Thumbs.db", *FOR_ASSISTANTS}
"""Files that tools create or the release itself brought: moved without a message."""


@dataclass(frozen=True)
class Correction:
    """A sentence about one correction of a folder."""

    student: str
    assignment: str  # empty for all of the student's
    sentence: str
    failed: bool = False  # whether the folder is not safe to read; then its hand-ins are left out


def correct_submissions(
    submitted: Path, quarantine: Path, assignments: Iterable[str], known: Iterable[str] = ()
) -> list[Correction]:
    """Correct all folders in `submitted`, move unexpected files below `quarantine`, and return the corrections.

    `known` are all assignments of the course; other folders of a student are named. An error of the system or of ours
    concerns one folder only.
    """
    done: list[Correction] = []
    chosen = tuple(assignments)
    named = {*chosen, *known}
    for folder in sorted(submitted.iterdir()) if submitted.is_dir() else ():
        student = unicodedata.normalize("NFC", folder.name)  # macOS decomposes letters with accents
        found = _walled(folder.name, "", partial(_student_folder, folder, student, quarantine))
        done += found
        place = folder.with_name(student)
        if any(one.failed for one in found) or not _is(place, stat.S_ISDIR):
            continue
        for name in chosen:
            done += _walled(student, name, partial(_correct, place / name, quarantine))
        if known:
            done += _walled(student, "", partial(_unknown, place, named))
    return done


def put_aside(quarantine: Path) -> tuple[str, ...]:
    """Return the names of all that lay in submitted/ and was no student's folder, in this run or an earlier one."""
    names = (path.name.partition("~")[2] for path in sorted((quarantine / _FOREIGN).glob("*~*")))
    return tuple(dict.fromkeys(name for name in names if name not in QUIET and not name.startswith(".")))


def _walled(student: str, assignment: str, correct: Callable[[], Iterable[str]]) -> list[Correction]:
    """Return the corrections of one folder, or one that says why there are none."""
    try:
        return [Correction(student, assignment, sentence) for sentence in correct()]
    except Exception as error:  # one folder must not stop the class
        sentence = f"The folder could not be made safe to read ({type(error).__name__}: {error}); it was left out."
        return [Correction(student, assignment, sentence, failed=True)]


def _student_folder(folder: Path, student: str, quarantine: Path) -> Iterator[str]:
    """Put aside what is no student's folder, and rename one whose name is only written in another way."""
    if not _is(folder, stat.S_ISDIR) or not STUDENT.fullmatch(student) or folder.name in QUIET:
        _move(folder, quarantine / _FOREIGN)
        if folder.name not in QUIET:
            yield f"{folder.name!r:.80} is not a student's folder; it was put aside."
    elif folder.name != student:
        if _is(folder.with_name(student), lambda _: True):
            raise FileExistsError(f"the same name is there twice, written in two ways: {student!r:.80}")
        folder.rename(folder.with_name(student))
        yield f"The folder's name was written with separate accents; it is {student!r:.80} now."


def _unknown(folder: Path, named: Collection[str]) -> list[str]:
    """Return a sentence on what lies beside the assignments in a student's folder, and is not graded."""
    others = [
        name for name in sorted(path.name for path in folder.iterdir()) if name not in named and name not in QUIET
    ]
    if not others:
        return []
    return [
        f"{', '.join(f'{name!r:.80}' for name in others[:5])}: no assignment has this name; nothing in it is graded."
    ]


def before_autograde(*, assignment: str, student: str, notebooks: list[str]) -> None:
    """Move files out of one submission that nbgrader must not copy or follow; nbgrader calls this hook.

    Notebooks stay as they are, since nbgrader has listed them already; links among them are not followed.
    """
    folder = Path(notebooks[0]).parent
    kept = folder.parents[2] / FOLDER / folder.parent.name / folder.name
    for _ in (*_foreign_files(folder, kept, keep_notebooks=True), *_bad_texts(folder, kept)):
        pass


def _correct(folder: Path, quarantine: Path) -> list[str]:
    if not _is(folder, lambda _: True):
        return []
    kept = quarantine / folder.parent.name / folder.name
    if not _is(folder, stat.S_ISDIR):
        _move(folder, kept)
        folder.mkdir()
    notebook = folder / f"{folder.name}.ipynb"
    earlier, names = notes_for(notebook, quarantine), other_names(notebook, quarantine) or _misnamed(notebook)
    sentences = [*_renamed(notebook), *_foreign_files(folder, kept), *_bad_texts(folder, kept)]
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


def _bad_texts(folder: Path, kept: Path) -> Iterator[str]:
    """Move nbgrader's two small files away if they are no such files, since nbgrader reads them whole."""
    stamp, secret = folder / TIMESTAMP, folder / SECRET
    if stamp.exists() and time_of(folder) is None:
        with stamp.open("rb") as file:
            begins = file.read(60).decode("utf-8", "replace")
        _move(stamp, kept)
        yield f"{TIMESTAMP} held no time ({begins!r}); the submission counts as handed in on time."
    if secret.exists() and not small_text(secret):
        _move(secret, kept)
        yield f"{SECRET} held no secret of nbgrader; feedback can't be fetched through the exchange."


def _move(path: Path, folder: Path) -> None:
    """Move `path` itself, never its link target, to a new name, and replace links in it by texts."""
    folder.mkdir(parents=True, exist_ok=True)
    kept = path.rename(folder / f"{time.time_ns()}~{_short(path.name)}")
    if _is(kept, stat.S_ISDIR):
        for place, folders, files in os.walk(kept):
            for name in (*folders, *files):
                with contextlib.suppress(OSError):  # too deep for a path, so that no tool gets there by one either
                    _replace_link(Path(place, name))
    else:
        _replace_link(kept)


def _short(name: str) -> str:
    """Return a name to which a prefix can be added: Linux allows 255 bytes; the end of a name says what it is."""
    raw = os.fsencode(name)
    return (
        name
        if len(raw) <= NAME_BYTES
        else f"{raw[:150].decode('utf-8', 'ignore')}…{raw[-40:].decode('utf-8', 'ignore')}"
    )


def _replace_link(path: Path) -> None:
    """Replace a link, pipe or device by a text, since tools that walk folders follow links."""
    if _is(path, stat.S_ISREG) or _is(path, stat.S_ISDIR):
        return
    was = _kind(path)
    path.unlink()
    path.write_text(f"Here was {was}.\n", encoding="utf-8")


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
