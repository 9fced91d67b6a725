"""Pages are timed in a real browser, and a machine without one says so."""

import asyncio
import shutil
import sys

import pytest

from benchmarks.grading import page_times
from scripts import browser
from tests import skips

LATE = """<!doctype html><title>late</title><table><tbody></tbody></table>
<script>setTimeout(() => document.querySelector("tbody").innerHTML = "<tr><td>1</td></tr>", 300)</script>"""


@pytest.mark.browser
@pytest.mark.skipif(not any(map(shutil.which, browser.NAMES)), reason=f"{skips.BROWSER}: Chromium")
def test_a_page_is_there_when_its_rows_are(tmp_path):
    (tmp_path / "late.html").write_text(LATE)

    async def seconds() -> float:
        async with browser.browser(tmp_path / "profile") as tab:
            return await tab.open((tmp_path / "late.html").as_uri(), page_times.ROWS.format(1))

    assert asyncio.run(seconds()) >= 0.3


def test_without_a_browser_there_is_a_sentence_before_a_class_is_graded(monkeypatch, capsys):
    monkeypatch.setattr(browser.shutil, "which", lambda _: None)
    monkeypatch.setattr(page_times.subprocess, "run", None)
    monkeypatch.setattr(sys, "argv", ["page_times"])

    assert page_times.main() == 2
    assert "There is no Chromium here" in capsys.readouterr().err
