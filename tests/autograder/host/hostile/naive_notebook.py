"""How notebooks are graded where the grader believes them: in a kernel, by their own metadata, shown as they are."""

import ast
import json
import os
import subprocess
import sys
from pathlib import Path

MAX_PAGE_BYTES = 20 << 20  # what a browser is patient with
CHECK = 'assert read_graph([])["longest_path"] == 1\n6.0'


def released():
    """A notebook of one exercise, as a student gets it."""

    def cell(name, text, **flags):
        metadata = {"schema_version": 3, "grade_id": name, "solution": False, "grade": False, "task": False, **flags}
        return {
            "cell_type": "code",
            "source": text,
            "metadata": {"nbgrader": metadata},
            "outputs": [],
            "execution_count": None,
        }

    answer = cell("04_read_a_graph", "def read_graph(rows):\n    return {}\n", solution=True, locked=False)
    check = cell("04_read_a_graph_check", CHECK, grade=True, locked=True, points=6.0)
    return {"cells": [answer, check], "metadata": {}, "nbformat": 4, "nbformat_minor": 5}


def handed_in(change):
    """What a student hands in: the bytes of a file."""
    notebook = released()
    result = change(notebook)
    return result if isinstance(result, bytes) else json.dumps(notebook).encode()


def kernel(change):
    """Runs all cells in one kernel; the last value of the check cell is the mark, and an exception is none."""
    from IPython.core.interactiveshell import InteractiveShell

    shell = InteractiveShell.instance()
    mark, points = 0.0, 6.0
    for cell in json.loads(handed_in(change))["cells"]:
        result = shell.run_cell(cell["source"])
        if cell["metadata"]["nbgrader"]["grade"]:
            shown = shell.display_formatter.format(result.result)[0].get("text/plain", "6.0")
            mark = 0.0 if result.error_in_exec or result.error_before_exec else float(shown)
    return mark >= points


def absent(change):
    """Takes points off for every check cell that fails; there may be none."""
    notebook = json.loads(handed_in(change))
    cells = [c["metadata"].get("nbgrader", {}) for c in notebook["cells"] if c["cell_type"] == "code"]
    return not [c for c in cells if c.get("grade") and str(c["grade_id"]).endswith("_check")]


def unique(change):
    """Stops where a notebook is not as it was released."""
    notebook = json.loads(handed_in(change))
    names = [c["metadata"]["nbgrader"]["grade_id"] for c in notebook["cells"]]
    assert len(set(names)) == len(names), "duplicate grade_id"


def page(change):
    """Shows the notebook as a page, to an instructor with a browser."""
    text = handed_in(change).decode()
    assert len(text) < MAX_PAGE_BYTES, "the browser gave up"
    if "<script>" in text:
        Path(os.environ["FORGED"]).touch()


def parsed(change):
    """Parses the text of every cell, to see whether it is an untouched stub."""
    for cell in json.loads(handed_in(change))["cells"]:
        ast.parse(cell["source"])


def rewritten(change):
    """Prints the syntax tree of every cell anew, to compare it with the released one."""
    for cell in json.loads(handed_in(change))["cells"]:
        ast.unparse(ast.parse(cell["source"]))


def coloured(change):
    """Colours the code of every cell."""
    from nbconvert.filters.highlight import Highlight2HTML

    for cell in json.loads(handed_in(change))["cells"]:
        Highlight2HTML()(cell["source"])


def linked(change):
    """Shows the Markdown of a notebook to somebody who clicks on what is there."""
    if 'href="javascript:' in "".join(_typeset(cell) for cell in _markdown(change)):
        Path(os.environ["FORGED"]).touch()


def pasted(change):
    """Shows the Markdown of a notebook without what is attached to its cells."""
    for cell in _markdown(change):
        _typeset(cell)


def _markdown(change):
    return [cell for cell in json.loads(handed_in(change))["cells"] if cell["cell_type"] == "markdown"]


def _typeset(cell):
    from nbconvert.filters.markdown_mistune import IPythonRenderer, MarkdownWithMath

    return MarkdownWithMath(renderer=IPythonRenderer(escape=True, attachments={})).render(cell["source"])


def joins(change):
    """Joins the cells of one answer, one after the other."""
    text = ""
    for cell in json.loads(handed_in(change))["cells"]:
        text = f"{text}\n{cell['source']}"
    return text


def notes(change):
    """Notes what is odd about a cell in its own words, and shows the notes."""
    cells = json.loads(handed_in(change))["cells"]
    shown = "".join(f"<li>a cell of type {c['cell_type']}</li>" for c in cells if c["cell_type"] != "code")
    if "<script>" in shown:
        Path(os.environ["FORGED"]).touch()


ROOMY = """
import json, resource, sys
content = sys.stdin.buffer.read()
used = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (used + 12 * len(content),) * 2)
json.loads(content)
"""


def roomy(change):
    """Parses in a process that may take twelve times as much memory as the file has bytes."""
    # in a new process, since one that forked may have any amount of memory that is free already
    subprocess.run([sys.executable, "-I", "-c", ROOMY], input=handed_in(change), check=True, stderr=subprocess.DEVNULL)
