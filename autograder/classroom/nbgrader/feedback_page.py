"""Turn a graded notebook into a page of feedback as nbgrader does, doing once what is the same for everybody.

nbgrader makes an exporter for every hand-in, and each would compile all templates of a page anew, and colour code that
stands in everybody's notebook. nbconvert would also parse each page and write it again, to give a text to pictures that
lack one; most pages have no such picture.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Mapping
from types import CodeType
from typing import Any

from jinja2 import BytecodeCache, Environment
from jinja2.bccache import Bucket
from nbconvert.exporters import HTMLExporter, TemplateExporter
from nbconvert.filters.highlight import Highlight2HTML
from nbconvert.filters.widgetsdatatypefilter import WidgetsDataTypeFilter
from nbformat import NotebookNode
from traitlets import Bool


class CompiledTemplates(BytecodeCache):
    """The templates that this process has compiled, by name; a template that has changed is compiled again.

    >>> env = Environment(loader=loader, bytecode_cache=CompiledTemplates())
    """

    def __init__(self) -> None:
        self._known: dict[str, tuple[str, CodeType]] = {}  # by key: the checksum of the source, and its code

    def load_bytecode(self, bucket: Bucket) -> None:
        """Give jinja2 the code of a template; it compiles where it is given none."""
        checksum, code = self._known.get(bucket.key, ("", None))
        if checksum == bucket.checksum:
            bucket.code = code

    def dump_bytecode(self, bucket: Bucket) -> None:
        """Keep what was just compiled."""
        if bucket.code is not None:
            self._known[bucket.key] = (bucket.checksum, bucket.code)


_COMPILED = CompiledTemplates()
MOST_CELLS = 256  # whose colours are kept; a notebook has fewer
_PICTURE = re.compile(r"<img\b[^>]*", re.IGNORECASE)
_TEXT = re.compile(r"\salt\s*=", re.IGNORECASE)


class KeptColours(Highlight2HTML):
    """nbconvert's colouring of code, done once for a cell that many notebooks have."""

    def __call__(self, source: str, language: str | None = None, metadata: Mapping[str, Any] | None = None) -> str:
        """Return the cell's code as HTML."""
        if self.extra_formatter_options:
            return str(super().__call__(source, language, metadata))
        return _coloured(source, language or self.pygments_lexer, (metadata or {}).get("magics_language"))


@functools.lru_cache(MOST_CELLS)
def _coloured(source: str, language: str, magics_language: str | None) -> str:
    return str(Highlight2HTML()(source, language, {"magics_language": magics_language} if magics_language else None))


class FeedbackExporter(HTMLExporter):
    """nbconvert's exporter of pages, whose templates are compiled by the first one in a process."""

    optimistic_validation = Bool(True).tag(config=True)  # against the notebook's format, once after all steps

    def _create_environment(self) -> Environment:
        environment: Environment = super()._create_environment()
        environment.bytecode_cache = _COMPILED
        return environment

    def from_notebook_node(
        self, nb: NotebookNode, resources: dict[str, Any] | None = None, **others: Any
    ) -> tuple[str, dict[str, Any]]:
        """Return the page; where a picture has no text, as nbconvert makes it."""
        found = self._init_resources(resources)
        language = nb.metadata.get("language_info", {})
        lexer = language.get("pygments_lexer", language.get("name"))
        self.register_filter("highlight_code", KeptColours(pygments_lexer=lexer, parent=self))
        widgets = WidgetsDataTypeFilter(notebook_metadata=self._nb_metadata, parent=self, resources=found)
        self.register_filter("filter_data_type", widgets)
        page, found = TemplateExporter.from_notebook_node(self, nb, found, **others)
        if all(_TEXT.search(picture) for picture in _PICTURE.findall(page)):
            return page, found
        whole: tuple[str, dict[str, Any]] = super().from_notebook_node(nb, resources, **others)
        return whole
