"""Netron's and Model Explorer's servers give a page and the program; both viewers have a twin in text."""

import html
import json
import re
import sys
import urllib.parse
import urllib.request

import pytest
import torch
from torch import nn
from torch.export import export

from course_lib.errors import GraphError
from course_lib.graph.viewers import WIDTH, ViewerPage, open_in_model_explorer, open_in_netron


class BlockEnd(nn.Module):
    def __init__(self):
        super().__init__()
        self.dense, self.norm = nn.Linear(8, 8), nn.LayerNorm(8)

    def forward(self, hidden, residual):
        return self.norm(self.dense(hidden) + residual)


@pytest.fixture(scope="module")
def program():
    return export(BlockEnd(), (torch.ones(2, 8), torch.ones(2, 8)))


def got(address):
    with urllib.request.urlopen(address, timeout=10) as reply:
        return reply.read()


def test_netron_serves_its_page_and_the_saved_program(program, tmp_path, monkeypatch):
    monkeypatch.delenv("TENSORBOARD_PROXY_URL", raising=False)
    page = open_in_netron(program, tmp_path, name="block")
    assert b'<meta name="file" content="/data/block.pt2">' in got(page.url)
    assert got(page.url + "data/block.pt2") == (tmp_path / page.name).read_bytes()


@pytest.mark.parametrize("name", ["50% of a?", "a#b", "größer", '"quoted"'])
def test_netron_gets_the_program_under_any_name_of_a_file(program, tmp_path, monkeypatch, name):
    monkeypatch.delenv("TENSORBOARD_PROXY_URL", raising=False)
    page = open_in_netron(program, tmp_path, name=name)
    (address,) = re.findall(r'<meta name="file" content="([^"]*)">', got(page.url).decode())
    assert got(urllib.parse.urljoin(page.url, address)) == (tmp_path / f"{name}.pt2").read_bytes()


def test_netrons_page_does_not_grow_old_and_reports_nothing(program, tmp_path, monkeypatch):
    monkeypatch.delenv("TENSORBOARD_PROXY_URL", raising=False)
    page = open_in_netron(program, tmp_path)
    with urllib.request.urlopen(page.url, timeout=10) as reply:
        shown, cookie = reply.read(), reply.headers["Set-Cookie"]
    assert shown.count(b'name="version" content="0.0.0"') == 1
    assert shown.count(b'name="version"') == 1
    assert b'name="date"' not in shown
    assert cookie.startswith("consent=")
    script = got(page.url + "browser.js").decode()
    for relied_on in (
        "packaged: this._meta.version && this._meta.version[0] !== '0.0.0'",
        "if (this._environment.packaged) {",
        "if (this._getCookie('consent')",
        "this._meta.date[0] ? new Date(",
    ):
        assert relied_on in script, "Netron's page has changed; see course_lib/graph/viewers.py"


def test_behind_jupyterlab_the_link_leads_through_its_port_and_the_graph_is_there_as_text(
    program, tmp_path, monkeypatch
):
    monkeypatch.setenv("TENSORBOARD_PROXY_URL", "/proxy/%PORT%/")
    page = open_in_netron(program, tmp_path, name="<b>")
    assert page.url.startswith("/proxy/")
    assert f'href="{page.url}"' in page._repr_html_()
    assert "<b>" not in page._repr_html_()
    for text in (str(page), page._repr_html_()):
        assert "layer_norm: function · aten.layer_norm.default" in text


def test_model_explorer_serves_its_page_and_the_graph_below_any_address(program, monkeypatch):
    monkeypatch.delenv("TENSORBOARD_PROXY_URL", raising=False)
    page = open_in_model_explorer(program, name="block")
    root, _, asked = page.url.partition("?data=")
    assert json.loads(urllib.parse.unquote(asked)) == {"models": [{"url": "graphs://block/0"}]}
    (graph,) = json.loads(got(f"{root}api/v1/load_graphs_json?graph_index=0"))["graphs"]
    assert len(graph["nodes"]) == 10
    assert json.loads(got(f"{root}api/v1/check_new_version"))["version"] == ""
    shown = got(page.url).decode()
    assert '<base href="./">' in shown
    scripts = [file for file in re.findall(r'src="([^"]+[.]js)"', shown) if "main" in file]
    text = shown + "".join(got(root + file).decode() for file in scripts)
    assert scripts
    assert '"api/v1/load_graphs_json"' in text, "Model Explorer's page has changed; see course_lib/graph/viewers.py"
    for rooted in ("/api/", "/apistream/", "/static_files/", "https://fonts"):
        assert not re.search(rf"""["'(`]{rooted}""", text)


def test_behind_jupyterlab_the_link_to_model_explorer_leads_through_its_port(program, monkeypatch):
    monkeypatch.setenv("TENSORBOARD_PROXY_URL", "/proxy/%PORT%/")
    page = open_in_model_explorer(program, name="<b>")
    assert re.match(r"/proxy/\d+/[?]data=", page.url)
    assert f'href="{page.url}"' in page._repr_html_()
    assert "<b>" not in page._repr_html_()
    assert "  LayerNorm_norm: 1 node" in page._repr_html_()


@pytest.mark.parametrize("converters", ["installed", "left out of an image"])
def test_layers_are_those_of_the_modules_with_the_nodes_in_each(program, converters, monkeypatch):
    if converters != "installed":
        monkeypatch.setitem(sys.modules, "ai_edge_model_explorer_adapter", None)
    assert open_in_model_explorer(program).text.splitlines() == [
        "inputs: 6 nodes",
        "BlockEnd: 3 nodes",
        "  Linear_dense: 1 node",
        "  LayerNorm_norm: 1 node",
        "output: 1 node",
    ]


@pytest.mark.parametrize(
    ("package", "call"),
    [("netron", lambda program: open_in_netron(program, "here")), ("model_explorer", open_in_model_explorer)],
)
def test_a_viewer_that_is_not_installed_is_named(program, package, call, monkeypatch):
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(GraphError, match="not installed; install it"):
        call(program)


def test_a_program_that_was_not_exported_and_a_file_that_cannot_be_written_are_refused(program, tmp_path):
    for view in (lambda given: open_in_netron(given, tmp_path), open_in_model_explorer):
        with pytest.raises(GraphError, match=r"got a BlockEnd; it expects what torch.export.export"):
            view(BlockEnd())
    for folder, name in ((tmp_path / "missing", "a"), (tmp_path, "a/b"), (tmp_path, "")):
        with pytest.raises(GraphError, match=r"cannot write .* a folder that exists, and a name without a slash"):
            open_in_netron(program, folder, name=name)
    (tmp_path / "taken.pt2").mkdir()
    for name in ("taken", "a\0b"):
        with pytest.raises(GraphError, match=r"cannot write .* Python says: "):
            open_in_netron(program, tmp_path, name=name)


def test_long_lines_of_the_text_are_folded_and_nothing_is_lost():
    told = "  first = " + " ".join(f"operand_{number}" for number in range(40))
    page = ViewerPage("Netron", "program", "/somewhere", f"{told}\nsecond")

    shown = html.unescape(page._repr_html_().split("<pre", 1)[1].split(">", 1)[1].removesuffix("</pre>"))

    assert max(map(len, shown.splitlines())) <= WIDTH
    assert shown.startswith("  first = operand_0")
    assert shown.split() == [*told.split(), "second"]
