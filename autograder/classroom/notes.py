"""Keep notes about a hand-in in a separate file, with the notebook's digest: another notebook gets no notes."""

import hashlib
import json
import stat
from collections.abc import Iterable
from pathlib import Path

NOTES = "notes.json"


def write_notes(notebook: Path, quarantine: Path, sentences: Iterable[str], names: Iterable[str] = ()) -> None:
    """Write `sentences` about this notebook's content, and replace earlier ones.

    `names` are the names under which files were handed in instead of the notebook.
    """
    noted = {"sha256": digest_of(notebook), "notes": list(sentences), "names": list(names)}
    file = _file(notebook, quarantine)
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps(noted))


def add_notes(notebook: Path, quarantine: Path, sentences: Iterable[str]) -> None:
    """Write further `sentences` about this notebook's content; what was written about it before stays."""
    noted = _noted(notebook, quarantine)
    write_notes(notebook, quarantine, dict.fromkeys((*noted["notes"], *sentences)), noted["names"])


def notes_for(notebook: Path, quarantine: Path, sha256: str = "") -> tuple[str, ...]:
    """Return the notes about this notebook's content; none if the content has changed since.

    `sha256` is the digest of the notebook, if the caller knows it.
    """
    return tuple(_noted(notebook, quarantine, sha256)["notes"])


def other_names(notebook: Path, quarantine: Path) -> tuple[str, ...]:
    """Return the names under which files were handed in instead of this notebook; none if the name was right."""
    return tuple(_noted(notebook, quarantine)["names"])


def digest_of(path: Path) -> str:
    """Return the SHA-256 of a regular file, or an empty string for a link or anything else."""
    try:
        regular = stat.S_ISREG(path.lstat().st_mode)
    except FileNotFoundError:
        return ""
    return hashlib.sha256(path.read_bytes()).hexdigest() if regular else ""


def _noted(notebook: Path, quarantine: Path, sha256: str = "") -> dict[str, list[str]]:
    nothing: dict[str, list[str]] = {"notes": [], "names": []}
    try:
        noted = json.loads(_file(notebook, quarantine).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return nothing
    return nothing | noted if noted["sha256"] == (sha256 or digest_of(notebook)) else nothing


def _file(notebook: Path, quarantine: Path) -> Path:
    return quarantine / notebook.parent.parent.name / notebook.parent.name / NOTES
