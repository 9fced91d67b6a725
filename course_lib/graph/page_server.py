"""Serve a viewer's page, changed on its way, and the program that it shows, from memory and one folder."""

import mimetypes
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import unquote, urlsplit

TEXTS = (".html", ".js", ".css")
NOT_OF_A_PAGE = (".py", ".pyc")


@dataclass(frozen=True)
class Site:
    """Describe what a server gives."""

    folder: Path
    """The page: index.html and every file below, but Python's."""
    change: Callable[[bytes], bytes]
    """What is done to each HTML, JavaScript and CSS file of the page."""
    answers: Mapping[str, bytes]
    """The reply to other addresses, such as "/data/program.pt2"."""
    cookie: str = ""
    """What the page finds as its cookie."""


def serve(site: Site) -> int:
    """Serve a site as long as this Python process runs, to this machine only, and return the port.

    No file is read by a name that a request gave: it must be one that the folder had at the start. What is not there
    has no content.
    """
    files = _files(site.folder)

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            path = unquote(urlsplit(self.path).path)
            if path in site.answers:
                self._give(site.answers[path], path)
            elif path in files:
                content = files[path].read_bytes()
                self._give(site.change(content) if files[path].suffix in TEXTS else content, files[path].name)
            else:
                self.send_response(HTTPStatus.NO_CONTENT)
                self.end_headers()

        def do_HEAD(self) -> None:
            self.do_GET()

        def _give(self, body: bytes, name: str) -> None:
            self.send_response(HTTPStatus.OK)
            self.send_header("Content-Type", mimetypes.guess_type(name)[0] or "application/octet-stream")
            self.send_header("Content-Length", str(len(body)))
            if site.cookie:
                self.send_header("Set-Cookie", site.cookie)
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            """Print nothing; a notebook would show every request."""

    listening = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=listening.serve_forever, daemon=True).start()
    return listening.server_port


def _files(folder: Path) -> dict[str, Path]:
    """Return the files of a page by their addresses."""
    found = (path for path in folder.rglob("*") if path.is_file() and path.suffix not in NOT_OF_A_PAGE)
    files = {f"/{path.relative_to(folder).as_posix()}": path for path in found}
    return {**files, "/": files["/index.html"]}
