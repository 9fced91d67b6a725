"""Make a well-formed notebook from any submitted file, with the metadata of the released notebook.

nbgrader reads notebooks through an exporter, from the command line and from Formgrader. This exporter never raises for
a bad file. It keeps the type, the text, the attached pictures and nbgrader's metadata of each cell, within limits, and
removes the rest: outputs, ids, and all that the notebook format does not define. A file that cannot be read is replaced
by the released notebook with the reason at the top, so that the student is in gradebook, CSV and report. The file
itself is not changed.

JupyterLab copies a cell's metadata when the cell is copied or split, and one such notebook would stop nbgrader's whole
batch. Metadata edited by hand could cause more harm. So only the id of the exercise that a cell answers is used. The
rest is written again from the gradebook. Each difference from the release that the student had is noted.
"""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import nbformat
from nbconvert.exporters import NotebookExporter
from nbformat import NotebookNode
from nbformat.corpus.words import generate_corpus_id
from nbformat.notebooknode import from_dict
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook
from nbgrader.api import Gradebook
from nbgrader.preprocessors import NbGraderPreprocessor
from traitlets import Bool

from autograder.classroom.hand_in import HandedIn, read_hand_in
from autograder.classroom.nbgrader.releases import (
    FILE,
    Cells,
    ReleasedCell,
    closest,
    differing,
    is_edited,
    released_cells,
    releases_of,
)
from autograder.classroom.pages.typesetting import PICTURE_TYPES

NOTES_KEY = "autograder_notes"  # in the resources that nbconvert hands from the exporter to the preprocessors
NOTEBOOK_KEY = "autograder"  # in the metadata of the notebook in autograded/
CELL_CHARACTERS = 20_000  # the rest of a cell is cut off
NOTEBOOK_CHARACTERS = 200_000  # in all cells; the longest lesson has 42,000
PICTURE_CHARACTERS = 3_000_000  # in all pictures, in base 64: what an instructor or a student opens stays small
NAME_CHARACTERS = 200
_EMPTY: Mapping[str, Mapping[str, Any]] = {"code": {"outputs": [], "execution_count": None}, "markdown": {}, "raw": {}}
_BASE_64 = re.compile(r"[A-Za-z0-9+/\n]*={0,2}\n?")
_SAID = ("schema_version", "grade_id", "grade", "solution", "task", "locked", "points")


class SubmissionExporter(NotebookExporter):
    """Export notebooks as nbconvert does, reading those in submitted/ with `readable_notebook`."""

    hand_in: HandedIn | None = None  # the one read last, for the grading step
    # check the notebook's format once, after all steps; nbconvert would check it after each step
    optimistic_validation = Bool(True).tag(config=True)

    def from_filename(self, filename: str, resources: Any = None, **options: Any) -> tuple[Any, dict[str, Any]]:
        """Convert a file. Files that are not submissions, such as our output in autograded/, are read by nbconvert."""
        released = self._released_for(Path(filename), resources or {})
        if released is None:
            return super().from_filename(filename, resources=resources, **options)
        names, quarantine = resources["nbgrader"], Path(self.config.GradeOutsideKernel.quarantine)
        hand_in = read_hand_in(names["assignment"], names["student"], Path(filename), quarantine)
        self.hand_in = hand_in.without_notebook()
        notebook = readable_notebook(hand_in, released)
        resources[NOTES_KEY] = (hand_in.reason,) if hand_in.reason else hand_in.repairs
        resources["metadata"] = {"name": Path(filename).stem, "path": str(Path(filename).parent)}
        return self.from_notebook_node(notebook, resources=resources, **options)

    def _released_for(self, path: Path, resources: Mapping[str, Any]) -> Path | None:
        """Return the released notebook that `path` answers, or None if `path` is not a submission."""
        converter: Any = self.parent
        course, names = converter.coursedir, resources["nbgrader"]
        submitted = course.format_path(course.submitted_directory, names["student"], names["assignment"])
        if path.parent.absolute() != Path(submitted).absolute():
            return None
        return Path(course.format_path(course.release_directory, ".", names["assignment"])) / path.name


def readable_notebook(hand_in: HandedIn, released: Path) -> NotebookNode:
    """Return the notebook of `hand_in`, well-formed; if it cannot be read, return `released` with the reason.

    Raises `OSError` if the released notebook is missing, and `RuntimeError` if the grader failed to read the
    submission or a person must decide. Neither is the student's fault.
    """
    if hand_in.fault or hand_in.undecided:
        raise RuntimeError(hand_in.fault or hand_in.undecided)
    if hand_in.notebook is not None:
        return rebuilt(hand_in.notebook)
    notebook = nbformat.read(released, as_version=4)
    reason = f"**This submission was graded as an empty notebook.** {hand_in.reason}"
    notebook.cells.insert(0, new_markdown_cell(reason))
    return notebook


def rebuilt(notebook: Mapping[str, Any]) -> NotebookNode:
    """Return a well-formed notebook with the cells of `notebook`, which may have any content."""
    rebuilding = _Rebuilding()
    return new_notebook(cells=[rebuilding.cell(cell) for cell in notebook["cells"] if isinstance(cell, dict)])


class _Rebuilding:
    """Make cells, within limits on the characters of the whole notebook."""

    def __init__(self) -> None:
        self._text, self._pictures = NOTEBOOK_CHARACTERS, PICTURE_CHARACTERS  # characters that are left

    def cell(self, cell: Mapping[str, Any]) -> NotebookNode:
        """Return a cell with the text and the pictures of `cell`."""
        given, metadata = cell.get("cell_type"), cell.get("metadata")
        kind = given if isinstance(given, str) and given in _EMPTY else "raw"
        ours = (
            {"nbgrader": _flat(metadata["nbgrader"])} if isinstance(metadata, dict) and "nbgrader" in metadata else {}
        )
        made = {"cell_type": kind, "id": generate_corpus_id(), "metadata": ours, "source": self._source(cell)}
        if kind == "markdown" and (pictures := self._attached(cell.get("attachments"))):
            made["attachments"] = pictures
        # new_code_cell would check the format of each cell, but new_notebook checks all cells at once
        return from_dict({**made, **_EMPTY[kind]})

    def _source(self, cell: Mapping[str, Any]) -> str:
        source = cell.get("source")
        lines = source if isinstance(source, list) else [source]
        text = "".join(line for line in lines if isinstance(line, str))
        most = min(CELL_CHARACTERS, self._text)
        self._text -= min(len(text), most)
        if len(text) > most:
            text = f"{text[:most]}\n# … {len(text) - most:,} more characters are not shown here"
        # JSON may contain half a surrogate pair, but the file that nbgrader writes must not
        return text.encode("utf-8", "replace").decode("utf-8")

    def _attached(self, attachments: object) -> dict[str, dict[str, str]]:
        """Return the pictures among a cell's attachments, by name and type."""
        found: dict[str, dict[str, str]] = {}
        for name, kinds in attachments.items() if isinstance(attachments, dict) else ():
            for kind in PICTURE_TYPES:
                data: object = kinds.get(kind) if isinstance(kinds, dict) else None
                if not isinstance(data, str) or len(data) > self._pictures or not _BASE_64.fullmatch(data):
                    continue
                if len(name) <= NAME_CHARACTERS and name.isprintable():
                    self._pictures -= len(data)
                    found.setdefault(name, {})[kind] = data.replace("\n", "")
        return found


def _flat(metadata: object) -> dict[str, object] | None:
    """Return what nbgrader's metadata says of a cell, without what nests or is unknown."""
    if metadata is None:
        return None
    given = metadata if isinstance(metadata, dict) else {}
    return {key: given[key] for key in _SAID if isinstance(given.get(key), str | int | float)}


class RepairMetadata(NbGraderPreprocessor):
    """Repair the metadata in one of nbgrader's steps, and write the notes into the notebook's metadata."""

    def preprocess(self, nb: NotebookNode, resources: Any) -> tuple[NotebookNode, Any]:
        """Repair one notebook."""
        names = resources["nbgrader"]
        with Gradebook(names["db_url"]) as gradebook:
            released = released_cells(gradebook.find_notebook(names["notebook"], names["assignment"]))
        earlier = releases_of(Path(self.config.GradeOutsideKernel.journal).with_name(FILE), names["assignment"])
        nb.cells, notes = repaired(nb.cells, released, earlier)
        for note in notes:
            self.log.warning("%s, %s: %s", names["student"], names["notebook"], note)
        notes = tuple(dict.fromkeys((*resources.get(NOTES_KEY, ()), *notes)))
        # this replaces an entry of this name written by a student
        nb.metadata[NOTEBOOK_KEY] = {"notes": list(notes)}
        return nb, resources


def repaired(
    cells: list[NotebookNode], released: Cells, earlier: Sequence[Cells] = ()
) -> tuple[list[NotebookNode], tuple[str, ...]]:
    """Restore metadata, join duplicates, and put deleted check cells back; return the cells and notes.

    The cells become as in `released`. The notes compare with the release that the notebook is closest to, which may be
    one of the `earlier` ones.
    """
    handed_out = closest(cells, (released, *earlier))
    kept: list[NotebookNode] = []
    first: dict[str, NotebookNode] = {}
    notes: list[str] = []
    for cell in cells:
        found = cell.metadata.pop("nbgrader", None)
        wanted = released.get(_grade_id(found))
        if wanted is None:
            if found is not None and _grade_id(found) not in handed_out:
                notes.append(
                    f"A cell carried the grading metadata of no cell of this notebook ({_grade_id(found)!r:.80})."
                )
            kept.append(cell)
        elif wanted.id in first:
            notes.append(_joined(first[wanted.id], cell, wanted))
        else:
            notes += _differences(found, cell, handed_out.get(wanted.id, wanted))
            first[wanted.id] = _released_cell(wanted, cell)
            kept.append(first[wanted.id])
    notes += _put_back(kept, first, released, handed_out)
    return kept, tuple(dict.fromkeys(notes))


def _grade_id(metadata: object) -> str:
    found = metadata.get("grade_id") if isinstance(metadata, dict) else None
    return found if isinstance(found, str) else ""


def _joined(first: NotebookNode, cell: NotebookNode, wanted: ReleasedCell) -> str:
    """Append the text of a second cell of the same id to the first, as the grader does."""
    if wanted.locked:
        return f"The locked cell {wanted.id} was there more than once; copies were removed."
    first.source = f"{first.source}\n{cell.source}"
    return f"The answer cell of {wanted.id} was split or copied; its parts were joined in order."


def _differences(found: Mapping[str, Any], cell: NotebookNode, wanted: ReleasedCell) -> list[str]:
    notes = []
    # for answer cells, this was noted when the submission was read
    if cell.cell_type != wanted.cell_type and wanted.locked:
        notes.append(f"The cell {wanted.id} had become a {cell.cell_type} cell; it is a {wanted.cell_type} cell again.")
    given_back = set(found) == {"grade_id"}  # by the reader of submissions, which has noted it
    wrong = differing(found, wanted)
    if wrong and not given_back:
        notes.append(f"The cell {wanted.id} had changed grading metadata ({', '.join(wrong)}); it was restored.")
    if wanted.locked and is_edited(cell, wanted):
        notes.append(f"The locked cell {wanted.id} had been edited; it was restored.")
    return notes


def _released_cell(wanted: ReleasedCell, cell: Mapping[str, Any]) -> NotebookNode:
    """Return a cell of the released type with the released grading metadata, and text and pictures of `cell`."""
    make = new_code_cell if wanted.cell_type == "code" else new_markdown_cell
    pictures = {"attachments": cell["attachments"]} if wanted.cell_type == "markdown" and "attachments" in cell else {}
    return make(source=cell["source"], metadata={**cell["metadata"], "nbgrader": dict(wanted.metadata)}, **pictures)


def _put_back(
    kept: list[NotebookNode], first: Mapping[str, NotebookNode], released: Cells, handed_out: Cells
) -> list[str]:
    """Insert deleted cells that carry points again, each after the cell that precedes it in the released notebook."""
    notes, position = [], 0
    for wanted in released.values():
        if wanted.id in first:
            position = next(i for i, cell in enumerate(kept) if cell is first[wanted.id]) + 1
        elif "points" in wanted.metadata:
            kept.insert(position, _released_cell(wanted, {"source": wanted.source, "metadata": {}}))
            position += 1
            notes += [f"The cell {wanted.id} had been deleted; it was put back."] * (wanted.id in handed_out)
        elif wanted.id in handed_out:
            notes.append(f"The cell {wanted.id} had been deleted.")
    return notes
