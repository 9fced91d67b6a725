"""One notebook in JupyterLab in Chromium: run it, answer in it, scroll through it, note what a reader trips over."""

import asyncio
import base64
import itertools
import json
import re
import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from scripts.browser import Browser

SCRIPT = (Path(__file__).parent / "looking.js").read_text(encoding="utf-8")
PATIENCE_S = 300.0  # a notebook takes up to a minute where nothing else runs
SETTLE_S = 0.4  # what scrolled into view is drawn by then
OVERLAP_PX = 60
MAX_LINES = 40
NOT_OURS = "/font-roboto/"  # TensorBoard asks for its fonts beside its proxy, and does without


@dataclass(frozen=True, order=True)
class Finding:
    """Something to look at: where, what, and the detail."""

    cell: str  # the cell's id, empty for the page
    what: str
    detail: str = ""

    def __str__(self) -> str:
        return f"{self.cell or 'page'}: {self.what}{self.detail and f' ({self.detail})'}"


class NotebookPage:
    """The notebook that is open in `tab`."""

    def __init__(self, tab: Browser) -> None:
        self._tab = tab

    async def open(self, address: str, *, width: int, height: int) -> None:
        """Open `address`, of JupyterLab with a notebook in it, and wait until its kernel is idle."""
        for domain in ("Runtime", "Log"):
            await self._tab.ask(f"{domain}.enable")
        await self._tab.ask(
            "Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False
        )
        await self._tab.open(address, "window.jupyterapp !== undefined")
        await self._value(SCRIPT)
        await self._until("looking.ready()")

    async def run_all(self) -> None:
        """Run every cell; raises `TimeoutError` where the kernel does not come to rest."""
        await self._do("looking.start('notebook:run-all-cells')")

    async def answer(self, cell: str, text: str) -> list[Finding]:
        """Write `text` into the answer's cell and run it, the try below it and the check; return what went wrong."""
        ids = await self._value("looking.cells.map(cell => cell.model.id)")
        at = ids.index(cell)
        await self._value(f"looking.write({json.dumps(cell)}, {json.dumps(text)})")
        run = ids[at : at + 3]
        for one in run:
            await self._do(f"looking.run({json.dumps(one)})")
        said = [output for output in await self.outputs() if output["cell"] in run]
        found = [Finding(one["cell"], one["kind"], one["text"]) for one in said if one["kind"] in ("error", "stderr")]
        report = next((one["text"] for one in said if one["cell"] == f"{cell}_check"), "")
        marks = re.match(r"\S+: (\S+) / (\S+) points", report)
        if marks is None or marks[1] != marks[2]:
            found.append(Finding(cell, "its reference does not pass", report))
        return found

    async def unfold(self, cell: str) -> bool:
        """Open what is folded in a cell's output; return whether anything was."""
        return bool(await self._value(f"looking.unfold({json.dumps(cell)})"))

    async def scroll_through(self, folder: Path) -> list[Finding]:
        """Take a picture of every screenful into `folder`, and return what cannot be read there."""
        found: set[Finding] = set()
        step = await self._value("looking.scrolled.clientHeight") - OVERLAP_PX
        for screen in itertools.count():
            await self._value(f"looking.scroll({screen * step})")
            await asyncio.sleep(SETTLE_S)
            await self.picture(folder / f"{screen + 1:02}.png")
            found |= {Finding(*one) for one in await self._value("looking.problems()")}
            if await self._value("looking.atEnd()"):
                break
        return sorted(found)

    async def picture(self, path: Path, *, of_cell: str = "", whole: bool = False) -> None:
        """Write a picture of the notebook, scrolled to a cell if one is named, or of the `whole` page."""
        if of_cell:
            await self._value(f"looking.show({json.dumps(of_cell)})")
            await asyncio.sleep(SETTLE_S)
        clip = {} if whole else {"clip": {**await self._value("looking.box"), "scale": 1}}
        taken = await self._tab.ask("Page.captureScreenshot", format="png", **clip)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(base64.b64decode(taken["data"]))

    async def outputs(self) -> list[dict[str, Any]]:
        """What the cells printed: `cell`, `kind`, `lines` and the beginning as `text`."""
        return list(await self._value("looking.outputs()"))

    async def printed_problems(self) -> list[Finding]:
        """Tracebacks, warnings, walls of text, and checks of a fresh notebook that do not say what they should."""
        found = []
        lines: Counter[str] = Counter()  # a kernel that is slow hands one print over in several pieces
        for output in await self.outputs():
            cell, kind, text = output["cell"], output["kind"], output["text"]
            lines[cell] += output["lines"]
            if kind in ("error", "stderr"):
                found.append(Finding(cell, kind, text))
            if cell.endswith("_check") and "not answered yet" not in text.lower():
                found.append(Finding(cell, "does not say that it is not answered yet", text))
        walls = [
            Finding(cell, "a wall of text", f"{count} lines") for cell, count in lines.items() if count > MAX_LINES
        ]
        return found + walls

    def console_errors(self) -> list[Finding]:
        """Errors that the page itself reported since it was opened."""
        found = []
        for event in self._tab.events:
            told = event["params"]
            if event["method"] == "Runtime.exceptionThrown":
                found.append(Finding("", "script error", str(told["exceptionDetails"])[:300]))
            elif event["method"] == "Runtime.consoleAPICalled" and told["type"] == "error":
                found.append(Finding("", "console error", str(told["args"])[:300]))
            elif event["method"] == "Log.entryAdded" and told["entry"]["level"] == "error":
                address = told["entry"].get("url", "")
                if NOT_OURS not in address:
                    found.append(Finding("", "log error", f"{told['entry']['text']} {address}"[:300]))
        return found

    async def _do(self, expression: str) -> None:
        """Start something that ends by writing `window.looked`, and wait for it and for the kernel."""
        await self._value(expression)
        await self._until("window.looked !== '' && looking.idle()")
        outcome = await self._value("window.looked")
        if outcome != "done":
            raise RuntimeError(f"JupyterLab: {outcome}")

    async def _until(self, condition: str) -> None:
        until = time.monotonic() + PATIENCE_S
        while not await self._tab.evaluate(condition):
            if time.monotonic() > until:
                raise TimeoutError(f"after {PATIENCE_S:.0f} s still not: {condition}")
            await asyncio.sleep(0.1)

    async def _value(self, expression: str) -> Any:
        """The value of an expression; raises `RuntimeError` where the page did."""
        answer = await self._tab.ask("Runtime.evaluate", expression=expression, returnByValue=True)
        if "exceptionDetails" in answer:
            raise RuntimeError(f"{expression[:80]}: {answer['exceptionDetails']}")
        return answer.get("result", {}).get("value")
