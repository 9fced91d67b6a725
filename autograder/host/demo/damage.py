"""What happens to notebooks on their way, by accident or on purpose; each is one function of the handed-in folder."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from autograder.host.demo.class_file import ClassFileError

SCRIPT = "<script>document.title = 'owned'</script><img src=x onerror=\"document.title = 'owned'\">"


def damaged(folder: Path, what: str) -> None:
    """Do ``what`` to the hand-in in ``folder``; raises `ClassFileError` if nothing is called so."""
    if what not in _KINDS:
        raise ClassFileError(f"no damage is called {what!r}; there are {', '.join(sorted(_KINDS))}.")
    _KINDS[what](folder)


def _notebook(folder: Path) -> Path:
    return folder / f"{folder.name}.ipynb"


def _cut_off(folder: Path) -> None:
    content = _notebook(folder).read_bytes()
    _notebook(folder).write_bytes(content[: len(content) // 2])


def _rename(folder: Path) -> None:
    _notebook(folder).rename(folder / f"{folder.name} (1).ipynb")


def _replace_by_text(folder: Path) -> None:
    _notebook(folder).unlink()
    (folder / "answers.txt").write_text("see e-mail\n")


def _delete_check(folder: Path) -> None:
    def change(notebook: dict[str, Any]) -> None:
        notebook["cells"] = [c for c in notebook["cells"] if not c["metadata"].get("nbgrader", {}).get("grade")]

    _changed(folder, change)


def _points_400(folder: Path) -> None:
    def change(notebook: dict[str, Any]) -> None:
        for cell in _check_cells(notebook):
            cell["metadata"]["nbgrader"] |= {"points": 400, "locked": False, "solution": True, "schema_version": 99}
            cell["source"] = ["400.0"]

    _changed(folder, change)


def _forge_output(folder: Path) -> None:
    def change(notebook: dict[str, Any]) -> None:
        notebook["metadata"]["autograder"] = {"notes": [SCRIPT]}
        for cell in _check_cells(notebook):
            data = {"text/plain": ["6.0"], "text/html": ["<b>6 of 6</b>"]}
            cell["outputs"] = [{"output_type": "execute_result", "metadata": {}, "execution_count": 1, "data": data}]

    _changed(folder, change)


def _script_in_markdown(folder: Path) -> None:
    def change(notebook: dict[str, Any]) -> None:
        notebook["cells"].insert(0, {"cell_type": "markdown", "id": "greeting", "metadata": {}, "source": [SCRIPT]})

    _changed(folder, change)


def _link_to_gradebook(folder: Path) -> None:
    (folder / "notes.txt").symlink_to("../../../gradebook.db")
    (folder / "data").symlink_to("/")


def _check_cells(notebook: dict[str, Any]) -> list[dict[str, Any]]:
    return [c for c in notebook["cells"] if c["metadata"].get("nbgrader", {}).get("grade")]


def _changed(folder: Path, change: Callable[[dict[str, Any]], None]) -> None:
    notebook = json.loads(_notebook(folder).read_text(encoding="utf-8"))
    change(notebook)
    _notebook(folder).write_text(json.dumps(notebook, indent=1), encoding="utf-8")


_KINDS: dict[str, Callable[[Path], None]] = {
    "cut_off": _cut_off,
    "delete_check": _delete_check,
    "forge_output": _forge_output,
    "link_to_gradebook": _link_to_gradebook,
    "points_400": _points_400,
    "rename": _rename,
    "replace_by_text": _replace_by_text,
    "script_in_markdown": _script_in_markdown,
}
