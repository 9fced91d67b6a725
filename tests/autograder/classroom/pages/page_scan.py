"""What a browser would load or run for a page, found by reading the page as a browser does."""

import os
import re
from html.parser import HTMLParser
from pathlib import Path

POLICY = "Content-Security-Policy"
LINKS = re.compile(r"(https?://|mailto:|#)", re.IGNORECASE)
_URL = re.compile(r"url\(\s*['\"]?(?!data:)|@import", re.IGNORECASE)
_LOADING = {"src", "srcset", "poster", "data", "background", "action", "formaction", "xlink:href"}


class _Reader(HTMLParser):
    def __init__(self, base: str) -> None:
        super().__init__()
        self.found: list[str] = []
        self.policy = ""
        self._base, self._inside = base, ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        self._inside = tag
        self.policy = self.policy or (given.get("content", "") if given.get("http-equiv") == POLICY else "")
        if tag in ("iframe", "object", "embed", "base", "form") or (tag == "script" and "src" not in given):
            self.found.append(tag)
        for name, value in given.items():
            self._attribute(tag, name, value.strip())

    def _attribute(self, tag: str, name: str, value: str) -> None:
        if self._base and value.startswith(self._base):
            return
        loads = name in _LOADING or (name == "href" and tag != "a")
        if name.startswith("on") or (name == "style" and _URL.search(value)):
            self.found.append(f"{tag} {name}={value[:60]}")
        if loads and not value.startswith("data:image/"):
            self.found.append(f"{tag} {name}={value[:60]}")
        if tag == "a" and name == "href" and not LINKS.match(value):
            self.found.append(f"a href={value[:60]}")

    def handle_data(self, data: str) -> None:
        if self._inside == "style" and (loaded := _URL.search(data)):
            self.found.append(f"style {data[loaded.start() : loaded.start() + 60]}")

    def handle_endtag(self, tag: str) -> None:
        self._inside = ""


def loaded_or_run(page: str, base: str = "") -> list[str]:
    """Return what the page loads or runs, and its links of other schemes; addresses below `base` are the server's."""
    reader = _Reader(base)
    reader.feed(page)
    return reader.found


def policy(page: str) -> str:
    """Return the page's content security policy."""
    reader = _Reader("")
    reader.feed(page)
    return reader.policy


def pages_that_load_or_run(folder: Path) -> dict[str, list[str]]:
    """Return what each page below `folder` loads, runs or leads to, but for other pages there; there has to be one."""
    pages = {str(path.relative_to(folder)): path.read_text(encoding="utf-8") for path in folder.rglob("*.html")}
    assert pages
    without_policy = {name: ["no policy"] for name, page in pages.items() if "default-src 'none'" not in policy(page)}
    inside = {
        name: {f"a href={os.path.relpath(folder / other, (folder / name).parent)}" for other in pages} for name in pages
    }  # links from one of these pages to another
    found = {name: [one for one in loaded_or_run(page) if one not in inside[name]] for name, page in pages.items()}
    return without_policy | {name: loaded for name, loaded in found.items() if loaded}
