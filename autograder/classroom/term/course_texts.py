"""Fit the released texts to the course: the due date, the next notebook, and the map of all notebooks.

A notebook's first cell gets a line with its due date, and one with what lateness costs. The paragraph "**Next:**" at
its end leads to the notebook that comes next in course.toml. The map, notebooks/README.md, lists the notebooks of the
course with their due dates.
"""

import json
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from autograder.classroom.term.due_dates import shown
from autograder.classroom.term.lateness import late_rule
from autograder.course_settings import Settings

_NEXT = re.compile(r"^\*\*Next:\*\*.*\Z", re.MULTILINE | re.DOTALL)
_LINK = re.compile(r"\]\(\.\./(\w+)/\1\.ipynb\)")
_MAP_ROW = re.compile(r"^\| \[(\w+)\]\(\1/\1\.ipynb\) \|")
_TRACKS = re.compile(r"^## Tracks\n.*?(?=^## )", re.MULTILINE | re.DOTALL)  # ways through all notebooks
LAST = "**Next:** this was the last notebook of the course."


def fit_notebook(path: Path, source: Path, order: Sequence[str], rules: Settings) -> None:
    """Write due date and next notebook into the released notebook at `path`.

    `source` holds the folders of all notebooks, and `order` lists those of the course.
    """
    notebook = json.loads(path.read_text(encoding="utf-8"))
    cells = notebook["cells"]
    later = order[order.index(path.stem) + 1 :]
    due = rules.due.get(path.stem)
    if due is not None:
        late = f"\n\n**Late:** {late_rule(rules)}" if rules.late else ""
        _set_text(cells[0], f"{_text(cells[0]).rstrip()}\n\n**Due:** {shown(due)}.{late}")
    for cell in cells:
        if rules.notebooks and cell["cell_type"] == "markdown" and _NEXT.search(_text(cell)):
            _set_text(cell, _NEXT.sub(lambda found: _next(found[0], later, source), _text(cell)))
    path.write_text(f"{json.dumps(notebook, indent=1, ensure_ascii=False)}\n", encoding="utf-8")


def _next(paragraph: str, later: Sequence[str], source: Path) -> str:
    """Return the paragraph, or another one if it leads to a notebook that does not come next in this course."""
    link = _LINK.search(paragraph)
    if not later:
        return LAST if link else paragraph
    if link and link[1] == later[0]:
        return paragraph
    return f"**Next:** [{_title(source / later[0] / f'{later[0]}.ipynb')}](../{later[0]}/{later[0]}.ipynb)."


def _title(path: Path) -> str:
    """Return the first line of a notebook, as "04 · Capture with torch.fx"."""
    notebook = json.loads(path.read_text(encoding="utf-8"))
    return _text(notebook["cells"][0]).partition("\n")[0].lstrip("# ")


def fitted_map(text: str, rules: Settings) -> str:
    """Return the map with the notebooks of the course only, and a column of due dates if there are any."""
    return "".join(_map_lines(_TRACKS.sub("", text) if rules.notebooks else text, rules))


def _map_lines(text: str, rules: Settings) -> Iterator[str]:
    in_map = False
    for line in text.splitlines(keepends=True):
        row = _MAP_ROW.match(line)
        if row and rules.notebooks and row[1] not in rules.notebooks:
            continue
        in_map = line.startswith("|") and (in_map or line.startswith("| notebook |"))
        if not in_map or not rules.due:
            yield line
            continue
        due = rules.due.get(row[1]) if row else None
        last = shown(due) if due else "due" if line.startswith("| notebook |") else "---" if not row else ""
        yield f"{line.rstrip()} {last} |\n" if row or last != "---" else f"{line.rstrip()}---|\n"


def _text(cell: Any) -> str:
    return "".join(cell["source"])


def _set_text(cell: Any, text: str) -> None:
    cell["source"] = text.splitlines(keepends=True)
