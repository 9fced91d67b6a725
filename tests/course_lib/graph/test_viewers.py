"""Netron's server gives a page and the saved program; both viewers have a twin in text."""

import logging
import sys
import urllib.request

import netron
import pytest
import torch
from torch import nn
from torch.export import export

from course_lib.errors import GraphError
from course_lib.graph.viewers import model_explorer_layers, open_in_netron


class BlockEnd(nn.Module):
    def __init__(self):
        super().__init__()
        self.dense, self.norm = nn.Linear(8, 8), nn.LayerNorm(8)

    def forward(self, hidden, residual):
        return self.norm(self.dense(hidden) + residual)


@pytest.fixture(scope="module")
def program():
    return export(BlockEnd(), (torch.ones(2, 8), torch.ones(2, 8)))


@pytest.fixture
def stopped():
    yield
    netron.stop()


@pytest.mark.usefixtures("stopped")
def test_netron_serves_its_page_and_the_saved_program(program, tmp_path, monkeypatch):
    monkeypatch.delenv("TENSORBOARD_PROXY_URL", raising=False)
    before = logging.getLogger().level, list(logging.getLogger().handlers)
    page = open_in_netron(program, tmp_path, name="block")
    assert (logging.getLogger().level, logging.getLogger().handlers) == before
    shown = urllib.request.urlopen(page.url, timeout=10).read().decode()
    assert '<meta name="file" content="/data/block.pt2">' in shown
    assert urllib.request.urlopen(page.url + "data/block.pt2", timeout=10).read() == page.file.read_bytes()


@pytest.mark.usefixtures("stopped")
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


@pytest.mark.parametrize("converters", ["installed", "left out of an image"])
def test_layers_are_those_of_the_modules_with_the_nodes_in_each(program, converters, monkeypatch):
    if converters != "installed":
        monkeypatch.setitem(sys.modules, "ai_edge_model_explorer_adapter", None)
    assert model_explorer_layers(program).splitlines() == [
        "inputs: 6 nodes",
        "BlockEnd: 3 nodes",
        "  Linear_dense: 1 node",
        "  LayerNorm_norm: 1 node",
    ]


@pytest.mark.parametrize(
    ("package", "call"),
    [("netron", lambda program: open_in_netron(program, "here")), ("model_explorer", model_explorer_layers)],
)
def test_a_viewer_that_is_not_installed_is_named(program, package, call, monkeypatch):
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(GraphError, match="not installed; install it"):
        call(program)


def test_a_program_that_was_not_exported_and_a_file_that_cannot_be_written_are_refused(program, tmp_path):
    for view in (lambda given: open_in_netron(given, tmp_path), model_explorer_layers):
        with pytest.raises(GraphError, match=r"got a BlockEnd; it expects what torch.export.export"):
            view(BlockEnd())
    for folder, name in ((tmp_path / "missing", "a"), (tmp_path, "a/b"), (tmp_path, "")):
        with pytest.raises(GraphError, match=r"cannot write .* a folder that exists, and a name without a slash"):
            open_in_netron(program, folder, name=name)
