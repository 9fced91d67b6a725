"""Keep what each release said of a notebook's cells, so that a notebook as it was handed out is not reported.

nbgrader keeps only the newest release. A student's notebook may be of an older one, with other points, or without a
question that was added since.
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from nbgrader.api import SourceCell

FILE = "releases.jsonl"
"""In the journal's folder: one line for each release of one notebook, with its cells."""

SCHEMA_VERSION = 3


@dataclass(frozen=True)
class ReleasedCell:
    """A cell as it was released, from the gradebook."""

    id: str
    cell_type: str
    source: str
    metadata: Mapping[str, Any]  # as nbgrader expects it

    @property
    def locked(self) -> bool:
        """Return whether students must not change the cell."""
        return bool(self.metadata["locked"])


Cells = Mapping[str, ReleasedCell]
"""The cells of one release by id, in order."""


def released_cells(notebook: Any) -> dict[str, ReleasedCell]:
    """Return the cells of a notebook from the gradebook, in order."""
    points = {cell.name: cell.max_score for cell in (*notebook.grade_cells, *notebook.task_cells)}
    kinds = {
        "grade": {cell.name for cell in notebook.grade_cells},
        "solution": {cell.name for cell in notebook.solution_cells},
        "task": {cell.name for cell in notebook.task_cells},
    }
    return {cell.name: _released(cell, kinds, points) for cell in notebook.source_cells}


def _released(cell: SourceCell, kinds: Mapping[str, set[str]], points: Mapping[str, float]) -> ReleasedCell:
    metadata: dict[str, Any] = {kind: cell.name in names for kind, names in kinds.items()}
    metadata |= {
        "schema_version": SCHEMA_VERSION,
        "grade_id": cell.name,
        "locked": bool(cell.locked),
        "cell_type": cell.cell_type,
    }
    if cell.name in points:
        metadata["points"] = points[cell.name]
    return ReleasedCell(cell.name, cell.cell_type, cell.source, metadata)


def keep_release(path: Path, assignment: str, notebook: Any) -> None:
    """Add the cells of a notebook in the gradebook to the file `path`, unless an equal release is there."""
    cells = released_cells(notebook)
    if cells not in releases_of(path, assignment):
        line = json.dumps({"assignment": assignment, "cells": [asdict(cell) for cell in cells.values()]})
        with path.open("a", encoding="utf-8") as file:
            file.write(f"{line}\n")


def releases_of(path: Path, assignment: str) -> tuple[Cells, ...]:
    """Return the releases of a notebook that the file `path` holds, the newest first."""
    return tuple(cells for name, cells in reversed([*_lines(path)]) if name == assignment)


def _lines(path: Path) -> Iterator[tuple[str, Cells]]:
    text = path.read_text(encoding="utf-8") if path.is_file() else ""
    for line in text.splitlines():
        try:
            found = json.loads(line)
        except ValueError:  # the last line, if its writer was killed
            continue
        yield found["assignment"], {cell["id"]: ReleasedCell(**cell) for cell in found["cells"]}


def closest(cells: Sequence[Mapping[str, Any]], releases: Sequence[Cells]) -> Cells:
    """Return the release that a notebook's cells agree with in most places, the first of equals."""
    found = {str(said.get("grade_id")): cell for cell in cells if isinstance(said := _said(cell), Mapping)}

    def agreement(release: Cells) -> int:
        same = sum(name in found and _is_as_released(found[name], wanted) for name, wanted in release.items())
        return 2 * same - len(release.keys() ^ found.keys())

    return max(releases, key=agreement)


def _said(cell: Mapping[str, Any]) -> Any:
    return cell["metadata"].get("nbgrader")


def _is_as_released(cell: Mapping[str, Any], wanted: ReleasedCell) -> bool:
    return not differing(_said(cell), wanted) and not (wanted.locked and is_edited(cell, wanted))


def differing(found: Mapping[str, Any], wanted: ReleasedCell) -> list[str]:
    """Return the keys in which a cell's metadata differs from the released metadata."""
    keys = (key for key, value in wanted.metadata.items() if found.get(key, _UNSAID.get(key)) != value)
    return sorted(key for key in keys if key != "cell_type")


def is_edited(cell: Mapping[str, Any], wanted: ReleasedCell) -> bool:
    """Return whether a cell has another text than it was released with; the ends of lines do not count."""
    return _LINE_END.sub("\n", cell["source"]).strip() != wanted.source.strip()


_UNSAID = {"task": False}  # values that nbgrader itself omits
_LINE_END = re.compile(r"\r\n?")  # editors and Git change the ends of lines
