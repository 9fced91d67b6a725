"""Feedback and Formgrader's manual view load nothing from elsewhere, and run no script of a student."""

import base64
import hashlib
import re
import time
from pathlib import Path
from typing import Any

import nbgrader
import pytest
from nbconvert.exporters import HTMLExporter
from nbconvert.preprocessors.sanitize import SanitizeHTML
from nbformat import NotebookNode
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output
from nbgrader.server_extensions.formgrader.formgrader import FormgradeExtension
from traitlets.config import Config

from autograder.classroom.nbgrader.feedback import FeedbackExporter
from autograder.classroom.nbgrader.hooks import install
from autograder.classroom.nbgrader.repair import rebuilt
from autograder.classroom.pages import filters
from autograder.host.records import ExerciseRecord, ExerciseStatus, SpeedRecord
from autograder.host.report import exercise_html
from tests.autograder.classroom.pages.page_scan import loaded_or_run, policy

PARTS = Path(nbgrader.__file__).parent / "server_extensions/formgrader"
SPEED = SpeedRecord("shown", "Shown.", 1.5, 1.4, 1.6, 9, 1, 10.0, 15.0, 1.3, 1.65, 2.0, "cpu")
PIXEL = base64.b64encode(b"\x89PNG\r\n").decode()
LINKS = (
    "[a](javascript:alert(1)) [b](JaVaScRiPt:alert(1)) [c]( vbscript:x) [d](data:text/html,<script>alert(1)</script>) "
    "[e](&#106;avascript:alert(1)) [f](java&Tab;script:alert(1)) [g](//elsewhere.example/x) [h](file:///etc/passwd) "
    "![i](javascript:alert(1)) ![j](https://elsewhere.example/pixel.png) [k][ref] <javascript:alert(1)>\n\n"
    "[ref]: javascript:alert(1)\n"
)
RAW = (
    "<script>alert(1)</script><img src=x onerror=alert(1)><a href='javascript:alert(1)'>x</a><iframe src=//e></iframe>"
)
FORMULAS = r"$\text{<img src=x onerror=alert(1)>}$ $\href{javascript:alert(1)}{x}$ $$\sqrt{d}$$ $a < b$"
DIAGRAM = "```mermaid\n<img src=x onerror=alert(1)>\n```\n\n```html\n<script>alert(1)</script>\n```"


def notebook(*cells: NotebookNode) -> NotebookNode:
    return new_notebook(cells=list(cells))


def shown(exporter: HTMLExporter, cells: NotebookNode) -> str:
    names = {"notebook": "one", "score": 1.0, "max_score": 2.0, "late_penalty": 0.0}
    resources: dict[str, Any] = {"nbgrader": names, "base_url": "/lab", "index": 0, "total": 1}
    resources |= {"submission_id": "s", "notebook_id": "n", "assignment_id": "a", "notebook_path": "p", "student": "u"}
    return str(exporter.from_notebook_node(cells, resources)[0])


def feedback() -> HTMLExporter:
    config = Config()
    install(config)
    config.HTMLExporter.template_name = "feedback"
    config.HTMLExporter.extra_template_basedirs = [str(PARTS / "templates")]
    config.HTMLExporter.extra_template_paths = [str(PARTS / "static/node_modules/bootstrap/dist/css")]
    config.CSSHTMLHeaderPreprocessor.enabled = True
    return FeedbackExporter(config=config)


def manual_view() -> HTMLExporter:
    config = Config()
    install(config)
    config.merge(FormgradeExtension().build_extra_config())
    config.CSSHTMLHeaderPreprocessor.enabled = True
    return HTMLExporter(config=config)


@pytest.mark.parametrize("exporter", [feedback, manual_view])
def test_nothing_of_a_students_runs_or_is_loaded(exporter: Any) -> None:
    texts = (
        LINKS,
        RAW,
        FORMULAS,
        DIAGRAM,
        f"*{LINKS}* {RAW}",
        "![x](attachment:x.png) ![y](attachment:../../etc/passwd)",
    )
    cells = [new_markdown_cell(text) for text in texts]
    cells += [{"cell_type": "raw", "metadata": {}, "source": RAW, "id": "r"}, new_code_cell(f"# {RAW}\n'''{LINKS}")]
    page = shown(exporter(), rebuilt({"cells": cells}))
    plain = shown(exporter(), notebook())

    assert loaded_or_run(page, "/lab") == loaded_or_run(plain, "/lab")
    assert "<math" in page
    assert "$$" not in page


def test_what_nbgraders_steps_escape_is_shown_as_it_was_written() -> None:
    sanitised = SanitizeHTML(enabled=True).preprocess(notebook(new_markdown_cell("$a < b$ `x & <b>` List<int>")), {})[0]
    page = shown(feedback(), sanitised)

    assert "<mo>&lt;</mo>" in page
    assert "&lt;b&gt;" in page
    assert "&amp;lt;" not in page
    assert "x &amp; &lt;b" in page


def test_feedback_loads_and_runs_nothing_at_all() -> None:
    page = shown(feedback(), notebook(new_markdown_cell("$1/\\sqrt{d}$")))

    assert loaded_or_run(page) == []
    assert "<script" not in page
    assert "<msqrt>" in page
    assert "default-src 'none'" in policy(page)
    assert "script-src" not in policy(page)
    assert 'lang="en"' in page


@pytest.mark.parametrize("exporter", [feedback, manual_view])
def test_our_own_report_is_shown_as_it_is(exporter: Any) -> None:
    html = str(exercise_html(ExerciseRecord("x", "graph", 1, 1, ExerciseStatus.GRADED, speed=SPEED)))
    report = new_output("execute_result", {"text/html": html}, execution_count=1)
    page = shown(exporter(), notebook(new_code_cell("check()", outputs=[report])))

    parts = re.split(r"<div [^>]*>", html)  # the manual view puts attributes into another order
    assert [part for part in parts if part not in page] == []
    assert len(re.findall(r'role="img"', page)) == 1
    assert len(set(re.findall(r'aria-label="[^"]*marks at[^"]*"', html + page))) == 1
    assert set(re.findall(r'style="[^"]*"', html)) <= set(re.findall(r'style="[^"]*"', page))


def test_the_scripts_of_the_manual_view_are_those_that_its_policy_allows() -> None:
    page = shown(manual_view(), notebook(new_markdown_cell("x")))
    rest = page.split("Content-Security-Policy")[1]
    inside = [text for text in re.findall(r"<script[^>]*>(.*?)</script>", rest, re.DOTALL) if text]
    inside += re.findall(r'\son\w+="([^"]*)"', rest)
    digests = {base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() for text in inside}

    assert digests == set(re.findall(r"'sha256-([^']+)'", policy(page)))
    assert "unsafe-inline" not in policy(page).split("script-src")[1].split(";")[0]
    assert "http" not in re.sub(r"https?://www\.w3\.org\S*", "", policy(page))
    assert [each for each in loaded_or_run(page, "/lab") if not each.startswith(("script", "span on"))] == []


@pytest.mark.parametrize("exporter", [feedback, manual_view])
def test_a_picture_that_was_pasted_is_shown(exporter: Any) -> None:
    cell = {
        "cell_type": "markdown",
        "source": "![two rows](attachment:image%20(1).png)",
        "metadata": {},
        "attachments": {"image (1).png": {"image/png": PIXEL, "text/html": RAW}, "b": 3, "c.png": {"image/png": RAW}},
    }
    page = shown(exporter(), rebuilt({"cells": [cell]}))

    assert re.search(f'<img (alt="two rows" )?src="data:image/png;base64,{PIXEL}"', page)


@pytest.mark.parametrize("text", [" \n" * 9_900, "*a" * 9_900], ids=["blank_lines", "stars"])
def test_a_text_that_takes_too_long_is_shown_as_it_is(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(filters, "PAGE_CPU_S", 0.5)
    started_s = time.process_time()
    page = shown(feedback(), rebuilt({"cells": [new_code_cell(f"{text}{i}") for i in range(8)]}))

    assert time.process_time() - started_s < 1  # of this process; the other one has its limit
    assert page.count("takes too long") == 8
    assert text[:1_000] in page
    assert loaded_or_run(page) == []


@pytest.mark.parametrize("text", ["[x ", "](/files", "src=", "<img ", "{{"])
def test_what_is_done_outside_the_limited_process_takes_little_time(text: str) -> None:
    cells = rebuilt({"cells": [new_code_cell(f"{text * 9_000}{i}") for i in range(3)]})
    shown(feedback(), notebook())
    started_s = time.process_time()
    shown(feedback(), cells)

    assert time.process_time() - started_s < 1


def test_of_many_long_cells_only_a_sum_is_shown() -> None:
    cells = rebuilt({"cells": [new_code_cell(f"{i:05}" * 3_000) for i in range(500)]}).cells

    assert sum(len(cell.source) for cell in cells) < 250_000
    assert "more characters are not shown here" in cells[-1].source


@pytest.mark.parametrize(
    "part",
    [
        "<script>1</script>", "<script src=a.js></script>", "<img src=a.png>", "<img src=//e/x>",
        "<b onclick=f()>x</b>",
        "<style>a {background: url(x.png)}</style>", "<style>@import 'x'</style>", "<b style='background:url(x)'>y</b>",
        "<link href=a.css>", "<a href=javascript:f()>x</a>", "<iframe></iframe>", "<svg><use xlink:href=x></use></svg>",
        "<form action=x></form>", "<object data=x></object>",
    ],
)  # fmt: skip
def test_the_scan_sees_what_a_page_loads_or_runs(part: str) -> None:
    assert loaded_or_run(f"<html><body>{part}</body></html>") != []
