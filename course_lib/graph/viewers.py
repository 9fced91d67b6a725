"""Open an exported program in Netron or in Model Explorer. Both are pages; each has a twin in text.

Both viewers' own servers need the root of a port or the network: behind JupyterLab's port Model Explorer's page asks
for `/api/...` in vain, and Netron's page asks for a country and a consent, and refuses to show anything once its
version is half a year old. `page_server` therefore gives the same pages, changed in these places.
"""

import html
import io
import json
import os
import re
import textwrap
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

import torch
from torch.export import ExportedProgram

from course_lib.errors import GraphError
from course_lib.graph.drawing import draw
from course_lib.graph.page_server import Site, serve
from course_lib.silence import kept_output

INDENT = "  "
WIDTH = 100  # characters of a line of text that fit into the page of a notebook

# Netron: version 0.0.0 sends no reports, so it needs no consent; without a date it is as new as today.
NETRON_VERSION = re.compile(rb'<meta name="version" content="[^"]*">')
NETRON_DATE = re.compile(rb'<meta name="date" content="[^"]*">')

# Model Explorer: addresses from the root, and fonts of the network.
ROOTED = re.compile(rb"""(?<=["'(`])/(?=(?:api|apipost|apistream|static_files)/)""")
FONTS = re.compile(rb"@font-face\{[^}]*url\(https:[^}]*\}|<link rel=\"preconnect\"[^>]*>")
READER = {"type": "adapter", "id": "builtin_json", "name": "JSON", "description": "", "fileExts": ["json"]}
NO_NEWS = {"version": "", "runningVersion": "", "releaseUrl": "", "desktopAppUrl": ""}


@dataclass(frozen=True)
class ViewerPage:
    """Hold the address of a program's page in a viewer; a notebook shows a link and the program as text."""

    viewer: str
    name: str
    url: str
    text: str

    def __str__(self) -> str:
        return f"{self.viewer} shows {self.name} at {self.url}\n{self.text}"

    def _repr_html_(self) -> str:
        address, name = html.escape(self.url, quote=True), html.escape(self.name)
        link = f'<a href="{address}" target="_blank" rel="noopener">Open {name} in {self.viewer}</a>'
        folded = "\n".join(textwrap.fill(line, WIDTH, subsequent_indent="    ") for line in self.text.splitlines())
        return f'<p>{link}</p><pre style="white-space: pre">{html.escape(folded)}</pre>'


def open_in_netron(program: ExportedProgram, folder: Path | str, *, name: str = "program") -> ViewerPage:
    """Save a program as NAME.pt2 in a folder, serve it to Netron's page, and return the page.

        >>> open_in_netron(program, folder)  # doctest: +SKIP
        Netron shows program.pt2 at http://127.0.0.1:36481/

    The server runs as long as this Python process and accepts connections from this machine only. Where JupyterLab
    proxies ports, `TENSORBOARD_PROXY_URL` is the address, with `%PORT%` in place of the port. Nothing is asked of the
    network. Raises `GraphError` if Netron is not installed, for a program that was not exported, and for a file that
    cannot be written.
    """
    _require_exported("open_in_netron", program)
    try:
        import netron
    except ImportError as error:
        raise GraphError("open_in_netron needs the package netron, which is not installed; install it.") from error
    file = Path(folder) / f"{name}.pt2"
    refusal = f"open_in_netron cannot write {str(file)!r}; it expects a folder that exists, and a name without a slash."
    if file.parent != Path(folder) or not name or not file.parent.is_dir():
        raise GraphError(refusal)
    saved = io.BytesIO()
    torch.export.save(program, saved)
    try:
        file.write_bytes(saved.getvalue())
    except (OSError, ValueError) as error:  # ValueError: a name with a null character
        raise GraphError(f"{refusal} Python says: {error}") from error
    data = f"/data/{file.name}"
    told = f'<meta name="version" content="0.0.0"><meta name="file" content="{quote(data)}">'

    def change(page: bytes) -> bytes:
        return NETRON_DATE.sub(b"", NETRON_VERSION.sub(lambda _: told.encode(), page))

    site = Site(Path(netron.__file__).parent, change, {data: saved.getvalue()}, "consent=not-needed")
    return ViewerPage("Netron", file.name, _address(serve(site)), draw(program.graph_module).text)


def open_in_model_explorer(program: ExportedProgram, *, name: str = "program") -> ViewerPage:
    """Serve a program to Model Explorer's page, and return the page; its text tells how the program is folded.

        >>> open_in_model_explorer(program, name="block")  # doctest: +SKIP
        Model Explorer shows block at http://127.0.0.1:36481/?data=...
        inputs: 7 nodes
        BlockEnd: 5 nodes
          dense: 1 node
        output: 1 node

    A layer of the page is a module of the program, in the text a line with the nodes in it and in its layers. The page
    is served as that of `open_in_netron`. Raises `GraphError` if Model Explorer is not installed, and for a program
    that was not exported.
    """
    _require_exported("open_in_model_explorer", program)
    try:
        import model_explorer
        from model_explorer import utils
    except ImportError as error:
        raise GraphError(
            "open_in_model_explorer needs the package ai-edge-model-explorer, which is not installed; install it."
        ) from error
    explorer = model_explorer.config()
    with kept_output():  # it says what it does
        explorer.add_model_from_pytorch(name, program)
    (converted,) = explorer.graphs_list
    asked = {
        "load_graphs_json": utils.convert_adapter_response(converted),
        "get_extensions": [READER],
        "check_new_version": NO_NEWS,
    }
    answers = {f"/api/v1/{what}": json.dumps(answer).encode() for what, answer in asked.items()}
    port = serve(Site(Path(model_explorer.__file__).parent / "web_app", _below_any_address, answers))
    url = f"{_address(port)}?data={explorer.to_url_param_value()}"
    return ViewerPage("Model Explorer", name, url, _layers(converted["graphs"][0]))


def _below_any_address(page: bytes) -> bytes:
    """Return a text of Model Explorer's page with relative addresses, and without fonts of the network."""
    return FONTS.sub(b"", ROOTED.sub(b"", page.replace(b'<base href="/">', b'<base href="./">')))


def _address(port: int) -> str:
    return os.environ.get("TENSORBOARD_PROXY_URL", "http://127.0.0.1:%PORT%/").replace("%PORT%", str(port))


def _layers(graph: Any) -> str:
    counts: Counter[tuple[str, ...]] = Counter()
    for node in graph.nodes:
        parts = tuple(filter(None, node.namespace.split("/"))) or (node.label,)  # the output is in no layer
        counts.update(parts[: depth + 1] for depth in range(len(parts)))
    return "\n".join(_line(parts, count) for parts, count in counts.items())


def _require_exported(asked_by: str, program: object) -> None:
    if not isinstance(program, ExportedProgram):
        raise GraphError(
            f"{asked_by} got a {type(program).__name__}; it expects what torch.export.export(model, inputs) returns."
        )


def _line(parts: tuple[str, ...], count: int) -> str:
    return f"{INDENT * (len(parts) - 1)}{parts[-1].rpartition('.')[2]}: {count} node{'s' * (count != 1)}"
