"""Read a submitted notebook so that whatever a student hands in becomes a well-formed one.

nbgrader reads notebooks through an exporter, from the command line and from Formgrader alike; ours never raises for a
bad file. It keeps of each cell its type, its text and nbgrader's metadata, and drops the rest: outputs, attachments,
ids, and anything that the notebook format does not know. What cannot be read at all is replaced by the released
notebook with the reason on top, so that the student stands in gradebook, CSV and report; the file stays as it was.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import nbformat
from nbconvert.exporters import NotebookExporter
from nbformat import NotebookNode
from nbformat.corpus.words import generate_corpus_id
from nbformat.notebooknode import from_dict
from nbformat.v4 import new_markdown_cell, new_notebook
from traitlets import Bool

from autograder.classroom.batch import read_hand_in
from autograder.classroom.submission import SubmissionError, answers_in

NOTES_KEY = "autograder_notes"  # in the resources that nbconvert hands from the exporter to the preprocessors
CELL_CHARACTERS = 20_000  # of a cell; the longer it is, the longer an instructor waits for its page of feedback
_EMPTY: dict[str, dict[str, Any]] = {"code": {"outputs": [], "execution_count": None}, "markdown": {}, "raw": {}}


class SubmissionExporter(NotebookExporter):
    """nbconvert's notebook exporter, reading what lies in submitted/ with `readable_notebook`."""

    # the notebook is held against its format once, after all steps, where nbconvert would do it after each
    optimistic_validation = Bool(True).tag(config=True)

    def from_filename(self, filename: str, resources: Any = None, **options: Any) -> tuple[Any, dict[str, Any]]:
        """Convert a file; the second stage, which reads our own output in autograded/, goes the ordinary way."""
        released = self._released_for(Path(filename), resources or {})
        if released is None:
            return super().from_filename(filename, resources=resources, **options)
        notebook, notes = readable_notebook(Path(filename), released)
        resources[NOTES_KEY] = notes
        resources["metadata"] = {"name": Path(filename).stem, "path": str(Path(filename).parent)}
        return self.from_notebook_node(notebook, resources=resources, **options)

    def _released_for(self, path: Path, resources: Mapping[str, Any]) -> Path | None:
        """The released notebook that ``path`` answers, or None if ``path`` is not a submission."""
        converter: Any = self.parent
        course, names = converter.coursedir, resources["nbgrader"]
        submitted = course.format_path(course.submitted_directory, names["student"], names["assignment"])
        if path.parent.absolute() != Path(submitted).absolute():
            return None
        return Path(course.format_path(course.release_directory, ".", names["assignment"])) / path.name


def readable_notebook(path: Path, released: Path) -> tuple[NotebookNode, tuple[str, ...]]:
    """The notebook at ``path``, well-formed, and notes on repairs; if unreadable, ``released`` with the reason.

    Raises ``OSError`` if that is missing: then the course is not released, and no student is to blame.
    """
    try:
        submission = read_hand_in(path)
    except SubmissionError as error:
        notebook = nbformat.read(released, as_version=4)
        reason = f"**This submission was graded as an empty notebook.** {error}"
        notebook.cells.insert(0, new_markdown_cell(reason))
        return notebook, (str(error),)
    return rebuilt(submission.notebook), answers_in(submission.notebook)[1]


def rebuilt(notebook: Mapping[str, Any]) -> NotebookNode:
    """A well-formed notebook with the cells of one that may be anything."""
    return new_notebook(cells=[_cell(cell) for cell in notebook["cells"] if isinstance(cell, dict)])


def _cell(cell: Mapping[str, Any]) -> NotebookNode:
    kind = str(cell.get("cell_type"))
    kind = kind if kind in _EMPTY else "raw"
    metadata = cell.get("metadata")
    ours = {"nbgrader": metadata["nbgrader"]} if isinstance(metadata, dict) and "nbgrader" in metadata else {}
    # not by new_code_cell and its like, each of which holds one cell against the format; new_notebook does it for all
    made = {"cell_type": kind, "id": generate_corpus_id(), "metadata": ours, "source": _text(cell.get("source"))}
    return from_dict(made | _EMPTY[kind])


def _text(source: object) -> str:
    lines = source if isinstance(source, list) else [source]
    text = "".join(line for line in lines if isinstance(line, str))
    if len(text) > CELL_CHARACTERS:
        text = f"{text[:CELL_CHARACTERS]}\n# … {len(text) - CELL_CHARACTERS:,} more characters are not shown here"
    # half a surrogate pair can stand in JSON, but not in the file that nbgrader writes
    return text.encode("utf-8", "replace").decode("utf-8")
