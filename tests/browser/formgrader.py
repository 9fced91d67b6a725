"""Formgrader in Chromium, as a person has it who reads a class: the list, a hand-in, points and a comment."""

import asyncio
import base64
import json
import os
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from scripts.browser import Browser, browser, jupyter_server
from tests.architecture.source_tree import ROOT

WIDTH, HEIGHT = 1366, 1000
PATIENCE_S = 300.0  # a page takes a second where nothing else runs
LISTED = "document.querySelectorAll('tbody tr td.name a').length > 0"
LOADED = "typeof formgrader !== 'undefined' && formgrader.grades?.loaded && formgrader.comments?.loaded"


@dataclass(frozen=True)
class Shown:
    """A hand-in on its page: what a person sees of one cell that is graded by hand."""

    most: str  # points, as the page says beside the field
    answer: str  # the text of the answer cell
    before: str  # all text above it
    score: str  # in the field, empty before somebody has given points
    comment: str
    waits: bool  # whether the field is marked as one that waits for a person


@contextmanager
def formgrader(work: Path) -> Iterator[str]:
    """Start JupyterLab on the course, with all that was made in `work`; yields the address of Formgrader."""
    environment = {**os.environ, "COURSE_WORK": str(work), "JUPYTER_CONFIG_DIR": str(work / "config")}
    with jupyter_server("lab", ROOT, environment, work / "server.log") as server:
        yield f"{server}/formgrader"


async def read_class(
    address: str, assignment: str, cell: str, points: Mapping[str, float], comment: str, pictures: Path
) -> dict[str, tuple[Shown, Shown]]:
    """Give each student in `points` these points for a cell, and a comment; returns the cell before and after."""
    found = {}
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        async with browser(Path(profile)) as tab:
            await tab.ask("Runtime.enable")
            await tab.ask(
                "Emulation.setDeviceMetricsOverride", width=WIDTH, height=HEIGHT, deviceScaleFactor=1, mobile=False
            )
            await _open(tab, f"{address}/gradebook/{assignment}/{assignment}", LISTED)
            await _picture(tab, pictures / "list.png")
            pages = await tab.evaluate(
                "Object.fromEntries($('a.name-shown').get().map(link => [link.text, link.href]))"
            )
            for student, given in points.items():
                await _open(tab, pages[student], LOADED)
                before = await _shown(tab, cell)
                await _fill(tab, f"{cell}-comment", comment)
                await _fill(tab, cell, f"{given:g}")
                await _picture(tab, pictures / f"{student}.png")
                await _open(tab, pages[student], LOADED)
                found[student] = before, await _shown(tab, cell)
            errors = [one["params"] for one in tab.events if one["method"] == "Runtime.exceptionThrown"]
            assert not errors, f"Formgrader's script: {str(errors[0])[:400]}"
    return found


async def _open(tab: Browser, address: str, is_there: str) -> None:
    await tab.ask("Page.navigate", url="about:blank")
    await tab.ask("Page.navigate", url=address)
    await _until(tab, f"location.href != 'about:blank' && document.readyState == 'complete' && ({is_there})")


async def _until(tab: Browser, condition: str) -> None:
    until = time.monotonic() + PATIENCE_S
    while not await tab.evaluate(condition):
        assert time.monotonic() < until, f"after {PATIENCE_S:.0f} s still not: {condition}"
        await asyncio.sleep(0.05)


async def _shown(tab: Browser, cell: str) -> Shown:
    field = f"$(document.getElementById({json.dumps(cell)}))"
    found = await tab.evaluate(
        f"""(() => {{
            const field = {field}, box = field.parents(".nbgrader_cell"), page = document.body.innerText;
            const answer = box.find(".panel-body").get(0).innerText;
            return {{
                most: field.parent().text().trim(), answer, before: page.slice(0, page.indexOf(answer)),
                score: field.val(), comment: box.find("textarea").val(), waits: field.hasClass("needs_manual_grade"),
            }};
        }})()"""
    )
    assert found is not None, f"the page has no field for {cell}"
    return Shown(**found)


async def _fill(tab: Browser, field: str, value: str) -> None:
    """Write into a field and leave it, as a person does; wait until Formgrader has saved it."""
    await tab.evaluate("window.saved = false; $(document).one('finished_saving', () => { window.saved = true; })")
    await tab.evaluate(
        f"""(() => {{
            const field = $(document.getElementById({json.dumps(field)}));
            field.focus().val({json.dumps(value)}).trigger("change");
        }})()"""
    )
    await _until(tab, "window.saved")


async def _picture(tab: Browser, path: Path) -> None:
    taken: dict[str, Any] = await tab.ask("Page.captureScreenshot", format="png")
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(base64.b64decode(taken["data"]))
