"""Look at the released notebooks as a student has them: JupyterLab in Chromium, every cell run, a picture a screenful.

python -m tests.browser.look FOLDER [NOTEBOOK ...] [--dark] [--width 1366]

In FOLDER, which must be outside the repository, each notebook gets a folder of pictures: its screenfuls in order, and
the report of each exercise, answered with its reference, also unfolded where a part is folded. What a program can see
is printed and kept in findings.txt there: tracebacks, warnings, walls of text, what is wider than the page, letters too
small, pictures without alt text, errors of the page's own scripts. What only an eye can see is in the pictures. Exit
status: 0 nothing found · 1 something · 2 there is no Chromium.
"""

import argparse
import asyncio
import json
import re
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from scripts.browser import NoBrowserError, browser, find
from tests.architecture.source_tree import ROOT
from tests.browser.notebook_page import Finding, NotebookPage
from tests.browser.student_lab import release, student_lab

WIDTH, HEIGHT = 1366, 1500  # of the window, so that a notebook is some ten pictures
MARKERS = re.compile(r"^ *### (BEGIN|END) SOLUTION *\n?", re.MULTILINE)


def references(name: str) -> dict[str, str]:
    """The solved answer cell of each exercise of a source notebook, by its id, in order."""
    notebook = json.loads((ROOT / "notebooks" / name / f"{name}.ipynb").read_text(encoding="utf-8"))
    solved = (cell for cell in notebook["cells"] if cell["metadata"].get("nbgrader", {}).get("solution"))
    return {cell["id"]: MARKERS.sub("", "".join(cell["source"])).rstrip() for cell in solved}


async def look_at(
    name: str, server: str, pictures: Path, *, answers: Mapping[str, str], width: int = WIDTH
) -> list[Finding]:
    """Run one notebook, take its pictures, give the answers in order, and return what was found."""
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        async with browser(Path(profile)) as tab:
            page = NotebookPage(tab)
            await page.open(f"{server}/lab/tree/{name}/{name}.ipynb?reset", width=width, height=HEIGHT)
            await page.picture(pictures / "00_opened.png", whole=True)
            await page.run_all()
            found = [*await page.printed_problems(), *await page.scroll_through(pictures)]
            for exercise, text in answers.items():
                found += await page.answer(exercise, text)
                await page.picture(pictures / f"answered_{exercise}.png", of_cell=f"{exercise}_check")
                if await page.unfold(f"{exercise}_check"):
                    await page.picture(pictures / f"unfolded_{exercise}.png", of_cell=f"{exercise}_check")
            return [*found, *page.console_errors()]


def names_of_notebooks() -> list[str]:
    """Every notebook of the course, in order."""
    return sorted(path.stem for path in (ROOT / "notebooks").glob("*/*.ipynb"))


def look(folder: Path, names: Sequence[str], *, dark: bool, width: int) -> dict[str, list[Finding]]:
    """Release and look at the notebooks `names`, one after the other; returns the findings of each."""
    found = {}
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as student:
        release(Path(student), names)
        with student_lab(Path(student), dark=dark) as server:
            for name in names:
                looked = look_at(name, server, folder / name, answers=references(name), width=width)
                found[name] = asyncio.run(looked)
                print(f"== {name}: {len(found[name])} to look at", *found[name], sep="\n", flush=True)
    return found


def main() -> int:
    """Look; see the module."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, metavar="FOLDER", help="for pictures and findings, outside the repository")
    parser.add_argument("names", nargs="*", metavar="NOTEBOOK", help="by default all")
    parser.add_argument("--dark", action="store_true", help="in JupyterLab's dark theme")
    parser.add_argument("--width", type=int, default=WIDTH, help="of the window in pixels")
    options = parser.parse_args()
    folder = options.folder.resolve()
    if folder.is_relative_to(ROOT):
        parser.error("FOLDER lies inside the repository")
    try:
        find()
    except NoBrowserError as error:
        print(f"look: {error}", file=sys.stderr)
        return 2
    found = look(folder, options.names or names_of_notebooks(), dark=options.dark, width=options.width)
    lines = [f"{name}: {finding}" for name, findings in found.items() for finding in findings]
    (folder / "findings.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")
    return 1 if lines else 0


if __name__ == "__main__":
    sys.exit(main())
