"""A program that a notebook gives to Netron or to Model Explorer is shown behind JupyterLab's port."""

import asyncio
from urllib.parse import urlsplit

import nbformat
import pytest

from scripts import browser, student_tree
from tests.browser.needs import needs_chromium
from tests.browser.notebook_page import NotebookPage
from tests.browser.student_lab import student_lab
from tests.drawn import some

EXPORT = """import tempfile
import torch
from course_lib.graph.viewers import open_in_model_explorer, open_in_netron
program = torch.export.export(torch.nn.Linear(8, 8), (torch.ones(2, 8),))"""
OPENED = {
    "netron": (
        'open_in_netron(program, tempfile.mkdtemp(), name="dense")',
        "[...document.querySelectorAll('svg text')].some(text => text.textContent === 'linear')",
    ),
    "explorer": (
        'open_in_model_explorer(program, name="dense")',
        "/op node count\\s+5\\s+layer count\\s+1\\s/.test(document.body.innerText)",
    ),
}
LINK = "document.querySelector('.jp-OutputArea-output a').href"

pytestmark = pytest.mark.browser


@pytest.fixture(scope="module")
def student(tmp_path_factory):
    """A student's folder with a notebook for each viewer."""
    folder = tmp_path_factory.mktemp("student")
    student_tree.copy_code(folder / "course")
    for viewer, (call, _) in OPENED.items():
        notebook = nbformat.v4.new_notebook(metadata={"kernelspec": {"name": "python3", "display_name": "Python 3"}})
        notebook.cells = [nbformat.v4.new_code_cell(EXPORT), nbformat.v4.new_code_cell(call)]
        (folder / "notebooks").mkdir(exist_ok=True)
        nbformat.write(notebook, folder / "notebooks" / f"{viewer}.ipynb")
    return folder


@pytest.fixture(scope="module")
def server(student):
    with student_lab(student) as address:
        yield address


async def follow_the_link(server, viewer, profile):
    """Run a viewer's notebook, open its link, wait until the program is shown; return link and addresses asked for."""
    async with browser.browser(profile) as tab:
        notebook = NotebookPage(tab)
        await notebook.open(f"{server}/lab/tree/{viewer}.ipynb?reset", width=1200, height=900)
        await notebook.run_all()
        link = await tab.evaluate(LINK)
        await tab.ask("Network.enable")
        before = len(tab.events)
        await tab.open(link, OPENED[viewer][1])
        sent = [one["params"] for one in tab.events[before:] if one["method"] == "Network.requestWillBeSent"]
        return link, [one["request"]["url"] for one in sent if urlsplit(one["documentURL"]).path == urlsplit(link).path]


@pytest.mark.slow
@needs_chromium
@pytest.mark.parametrize("viewer", some([*OPENED], 1, name="viewers"))
def test_a_program_is_shown_behind_jupyterlabs_port(server, viewer, tmp_path):
    link, asked = asyncio.run(follow_the_link(server, viewer, tmp_path))

    assert link.startswith(f"{server}/proxy/")
    root = link.partition("?")[0]
    assert len(asked) > 2
    assert [address for address in asked if not address.startswith((root, "data:", "blob:"))] == []
