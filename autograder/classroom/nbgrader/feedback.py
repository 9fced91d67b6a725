"""Make a page of feedback of a graded notebook, and give it back through nbgrader's exchange.

The pages are nbgrader's, but work that is the same for everybody is done once. nbgrader makes an exporter for every
hand-in, and each would compile all templates of a page, and colour code that stands in everybody's notebook. nbconvert
would also parse each page and write it again, to give a text to pictures without one; most pages have no such picture.

nbgrader stops giving back at the first feedback without the two files that it leaves beside a hand-in. A student who
handed in another way, or nothing, has none; that is said, and the others get theirs. A student's nbgrader asks for
feedback by the names of the files that were handed in. Where one had another name than the notebook's, the page is
released under that name too.
"""

import functools
import re
import shutil
from collections.abc import Mapping
from pathlib import Path
from types import CodeType
from typing import Any

from jinja2 import BytecodeCache, Environment
from jinja2.bccache import Bucket
from nbconvert.exporters import HTMLExporter, TemplateExporter
from nbconvert.filters.highlight import Highlight2HTML
from nbconvert.filters.widgetsdatatypefilter import WidgetsDataTypeFilter
from nbformat import NotebookNode
from nbgrader.exchange.default import ExchangeReleaseFeedback
from nbgrader.utils import notebook_hash
from traitlets import Bool

from autograder.classroom.nbgrader.quarantine import SECRET, TIMESTAMP
from autograder.classroom.notes import other_names

MOST_CELLS = 256  # whose coloured text is kept; a notebook has fewer
_PICTURE = re.compile(r"<img\b[^>]*", re.IGNORECASE)
_TEXT = re.compile(r"\salt\s*=", re.IGNORECASE)


class CompiledTemplates(BytecodeCache):
    """The templates that this process has compiled, by name; a template that has changed is compiled again.

    >>> env = Environment(loader=loader, bytecode_cache=CompiledTemplates())
    """

    def __init__(self) -> None:
        self._known: dict[str, tuple[str, CodeType]] = {}  # by key: the checksum of the source, and its code

    def load_bytecode(self, bucket: Bucket) -> None:
        """Give jinja2 the code of a template; jinja2 compiles a template for which it is given none."""
        checksum, code = self._known.get(bucket.key, ("", None))
        if checksum == bucket.checksum:
            bucket.code = code

    def dump_bytecode(self, bucket: Bucket) -> None:
        """Keep a template that was just compiled."""
        if bucket.code is not None:
            self._known[bucket.key] = (bucket.checksum, bucket.code)


_COMPILED = CompiledTemplates()


class KeptColours(Highlight2HTML):
    """Colour code as nbconvert does, once for a cell that many notebooks have."""

    def __call__(self, source: str, language: str | None = None, metadata: Mapping[str, Any] | None = None) -> str:
        """Return the cell's code as HTML."""
        if self.extra_formatter_options:
            return str(super().__call__(source, language, metadata))
        return _coloured(source, language or self.pygments_lexer, (metadata or {}).get("magics_language"))


@functools.lru_cache(MOST_CELLS)
def _coloured(source: str, language: str, magics_language: str | None) -> str:
    return str(Highlight2HTML()(source, language, {"magics_language": magics_language} if magics_language else None))


class FeedbackExporter(HTMLExporter):
    """Export pages as nbconvert does; the first exporter of a process compiles the templates for all."""

    optimistic_validation = Bool(True).tag(config=True)  # check the notebook's format once, after all steps

    def _create_environment(self) -> Environment:
        environment: Environment = super()._create_environment()
        environment.bytecode_cache = _COMPILED
        return environment

    def from_notebook_node(
        self, nb: NotebookNode, resources: dict[str, Any] | None = None, **others: Any
    ) -> tuple[str, dict[str, Any]]:
        """Return the page; nbconvert makes it where a picture has no text."""
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


class ReleaseToEach(ExchangeReleaseFeedback):
    """Release feedback for nbgrader, from the command line and from Formgrader alike."""

    src_path: str  # a pattern with * for the student

    def copy_files(self) -> None:
        """Release the feedback of each student who handed in here, and name the others."""
        pattern, excluded = self.src_path, self.coursedir.student_id_exclude
        without = []
        for folder in sorted(Path("/").glob(f"{pattern.lstrip('/')}/")):
            student = folder.parent.name
            if not (folder / SECRET).is_file() or not (folder / TIMESTAMP).is_file():
                without.append(student)
                continue
            self.src_path = str(folder)
            try:
                super().copy_files()
                self._under_other_names(folder)
            except (OSError, ValueError) as error:  # a student may have written anything into the two files
                self.log.error("The feedback of %s was not released: %s", student, error)
        self.src_path, self.coursedir.student_id_exclude = pattern, excluded
        if without:
            self.log.warning(
                "Not handed in through the exchange, so their feedback can only be sent from %s: %s",
                Path(pattern).parent.parent,
                ", ".join(without),
            )

    def _under_other_names(self, folder: Path) -> None:
        """Release the page of `folder` once more for each name by which its student's nbgrader will ask."""
        assignment, student, secret = folder.name, folder.parent.name, (folder / SECRET).read_text()
        submitted = self.coursedir.format_path(self.coursedir.submitted_directory, student, assignment)
        quarantine = Path(self.config.GradeOutsideKernel.quarantine)
        released = _page(Path(self.dest_path), secret, assignment)
        for name in other_names(Path(submitted, f"{assignment}.ipynb"), quarantine) if released.is_file() else ():
            page = _page(Path(self.dest_path), secret, Path(name).stem)
            shutil.copy(released, page.with_suffix(".part"))
            page.with_suffix(".part").replace(page)  # whole or not at all, since a student may fetch it now


def _page(folder: Path, secret: str, name: str) -> Path:
    """Return where nbgrader looks for the feedback on the notebook `name` of the hand-in that has this secret."""
    return folder / f"{notebook_hash(secret=secret, notebook_id=name)}.html"
