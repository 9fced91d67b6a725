"""Open an exported program in Netron, and tell how Model Explorer folds it. Both are pages; each has a twin in text."""

import contextlib
import html
import io
import logging
import os
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import torch
from torch.export import ExportedProgram

from course_lib.errors import GraphError
from course_lib.graph.drawing import draw

INDENT = "  "


@dataclass(frozen=True)
class NetronPage:
    """Hold the address of a page in Netron; a notebook shows a link and the graph as text."""

    url: str
    file: Path
    text: str

    def __str__(self) -> str:
        return f"Netron shows {self.file.name} at {self.url}\n{self.text}"

    def _repr_html_(self) -> str:
        address, name = html.escape(self.url, quote=True), html.escape(self.file.name)
        link = f'<a href="{address}" target="_blank" rel="noopener">Open {name} in Netron</a>'
        return f"<p>{link}: {address}</p><pre>{html.escape(self.text)}</pre>"


def open_in_netron(program: ExportedProgram, folder: Path | str, *, name: str = "program") -> NetronPage:
    """Save a program as NAME.pt2 in a folder, serve it to Netron's page, and return the page.

        >>> open_in_netron(program, folder)  # doctest: +SKIP
        Netron shows program.pt2 at http://localhost:8080/

    The server runs as long as this Python process and accepts connections from this machine only. Where JupyterLab
    proxies ports, `TENSORBOARD_PROXY_URL` is the address, with `%PORT%` in place of the port. The page works offline;
    with a network it asks ipinfo.io for your country. Raises `GraphError` if Netron is not installed, for a program
    that was not exported, and for a file that cannot be written.
    """
    _require_exported("open_in_netron", program)
    try:
        import netron
    except ImportError as error:
        raise GraphError("open_in_netron needs the package netron, which is not installed; install it.") from error
    file = Path(folder) / f"{name}.pt2"
    if file.parent != Path(folder) or not name or not file.parent.is_dir():
        raise GraphError(
            f"open_in_netron cannot write {file}; it expects a folder that exists, and a name without a slash."
        )
    torch.export.save(program, file)
    root, silent = logging.getLogger(), logging.NullHandler()
    root.addHandler(silent)  # without a handler, netron would make the root logger print everything
    try:
        host, port = netron.start(str(file), browse=False)
    finally:
        root.removeHandler(silent)
    url = os.environ.get("TENSORBOARD_PROXY_URL", f"http://{host}:%PORT%/").replace("%PORT%", str(port))
    return NetronPage(url, file, draw(program.graph_module).text)


def model_explorer_layers(program: ExportedProgram) -> str:
    """Return the layers into which Model Explorer folds a program, a line each, with the nodes in each.

        >>> print(model_explorer_layers(program))  # doctest: +SKIP
        inputs: 7 nodes
        BlockEnd: 5 nodes
          dense: 1 node

    A layer is a module of the program. A layer's count includes the layers in it. Raises `GraphError` if Model Explorer
    is not installed, and for a program that was not exported.
    """
    _require_exported("model_explorer_layers", program)
    try:
        from model_explorer import config
    except ImportError as error:
        raise GraphError(
            "model_explorer_layers needs the package ai-edge-model-explorer, which is not installed; install it."
        ) from error
    explorer = config()
    with contextlib.redirect_stdout(io.StringIO()):  # it says what it does
        explorer.add_model_from_pytorch("program", program)
    graph = explorer.graphs_list[0]["graphs"][0]
    counts: Counter[tuple[str, ...]] = Counter()
    for node in graph.nodes:
        parts = tuple(filter(None, node.namespace.split("/")))
        counts.update(parts[: depth + 1] for depth in range(len(parts)))
    return "\n".join(_line(parts, count) for parts, count in counts.items())


def _require_exported(asked_by: str, program: object) -> None:
    if not isinstance(program, ExportedProgram):
        raise GraphError(
            f"{asked_by} got a {type(program).__name__}; it expects what torch.export.export(model, inputs) returns."
        )


def _line(parts: tuple[str, ...], count: int) -> str:
    return f"{INDENT * (len(parts) - 1)}{parts[-1].rpartition('.')[2]}: {count} node{'s' * (count != 1)}"
