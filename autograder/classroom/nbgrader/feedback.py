"""Make a feedback page from a graded notebook, and release it through nbgrader's exchange.

The pages are nbgrader's, but work that is the same for all students is done once. nbgrader creates an exporter for
every hand-in. Each exporter would compile all templates of a page, and highlight code that is in every notebook.
nbconvert would also parse and rewrite each page to add alternative text to pictures. Most pages do not need this.

nbgrader stops releasing at the first feedback without the two files that it writes beside a hand-in. These files are
missing if a student handed in another way, or nothing. Here such students are logged, and the others get their
feedback. A student's nbgrader requests feedback by the names of the submitted files. If a file had another name than
the notebook, the page is also released under that name.
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

MOST_CELLS = 256  # cells whose highlighted code is cached; a notebook has fewer
_PICTURE = re.compile(r"<img\b[^>]*", re.IGNORECASE)
_TEXT = re.compile(r"\salt\s*=", re.IGNORECASE)


class CompiledTemplates(BytecodeCache):
    """The templates that this process has compiled, by name; a changed template is compiled again.

    >>> env = Environment(loader=loader, bytecode_cache=CompiledTemplates())
    """

    def __init__(self) -> None:
        self._known: dict[str, tuple[str, CodeType]] = {}  # by key: checksum of the source, compiled code

    def load_bytecode(self, bucket: Bucket) -> None:
        """Set the code of a known template; jinja2 compiles a template without code."""
        checksum, code = self._known.get(bucket.key, ("", None))
        if checksum == bucket.checksum:
            bucket.code = code

    def dump_bytecode(self, bucket: Bucket) -> None:
        """Keep a template that was just compiled."""
        if bucket.code is not None:
            self._known[bucket.key] = (bucket.checksum, bucket.code)


_COMPILED = CompiledTemplates()


class KeptColours(Highlight2HTML):
    """Highlight code as nbconvert does, but only once for a cell that many notebooks contain."""

    def __call__(self, source: str, language: str | None = None, metadata: Mapping[str, Any] | None = None) -> str:
        """Return the cell's code as HTML."""
        if self.extra_formatter_options:
            return str(super().__call__(source, language, metadata))
        return _coloured(source, language or self.pygments_lexer, (metadata or {}).get("magics_language"))


@functools.lru_cache(MOST_CELLS)
def _coloured(source: str, language: str, magics_language: str | None) -> str:
    return str(Highlight2HTML()(source, language, {"magics_language": magics_language} if magics_language else None))


class FeedbackExporter(HTMLExporter):
    """Export pages as nbconvert does; only the first exporter of a process compiles the templates."""

    optimistic_validation = Bool(True).tag(config=True)  # check the notebook's format once, after all steps

    def _create_environment(self) -> Environment:
        environment: Environment = super()._create_environment()
        environment.bytecode_cache = _COMPILED
        return environment

    def from_notebook_node(
        self, nb: NotebookNode, resources: dict[str, Any] | None = None, **others: Any
    ) -> tuple[str, dict[str, Any]]:
        """Return the page; nbconvert makes it only if a picture has no alternative text."""
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
    """Release feedback for nbgrader, from the command line and from Formgrader."""

    src_path: str  # a pattern with * for the student

    def copy_files(self) -> None:
        """Release the feedback of each student who handed in through the exchange, and log the others."""
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
        """Release the page of `folder` also under each other name that the student's nbgrader will request."""
        assignment, student, secret = folder.name, folder.parent.name, (folder / SECRET).read_text()
        submitted = self.coursedir.format_path(self.coursedir.submitted_directory, student, assignment)
        quarantine = Path(self.config.GradeOutsideKernel.quarantine)
        released = _page(Path(self.dest_path), secret, assignment)
        for name in other_names(Path(submitted, f"{assignment}.ipynb"), quarantine) if released.is_file() else ():
            page = _page(Path(self.dest_path), secret, Path(name).stem)
            shutil.copy(released, page.with_suffix(".part"))
            page.with_suffix(".part").replace(page)  # atomic, since a student may fetch it now


def _page(folder: Path, secret: str, name: str) -> Path:
    """Return where nbgrader looks for the feedback on the notebook `name` of the hand-in that has this secret."""
    return folder / f"{notebook_hash(secret=secret, notebook_id=name)}.html"
