"""Make a feedback page from a graded notebook, and release it through nbgrader's exchange.

The pages are nbgrader's, but they run no script and load nothing: formulas are MathML, and what a student wrote is
typeset by `autograder.classroom.pages`. Work that is the same for all students is done once. nbgrader creates an
exporter for every hand-in, and each would compile all templates of a page.

nbgrader stops releasing at the first feedback without the two files that it writes beside a hand-in. These files are
missing if a student handed in another way, or nothing. Here such students are logged, and the others get their
feedback. A student's nbgrader requests feedback by the names of the submitted files. If a file had another name than
the notebook, the page is also released under that name. A released page also has the student's marks for all notebooks
whose feedback was released.
"""

import functools
import re
import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import CodeType
from typing import Any

from jinja2 import BytecodeCache, ChoiceLoader, Environment, FileSystemLoader
from jinja2.bccache import Bucket
from markupsafe import Markup
from nbconvert.exporters import HTMLExporter, TemplateExporter
from nbformat import NotebookNode
from nbformat.v4 import new_markdown_cell
from nbgrader.api import Gradebook
from nbgrader.exchange.default import ExchangeReleaseFeedback
from nbgrader.preprocessors import GetGrades
from nbgrader.utils import notebook_hash
from traitlets import Bool

from autograder.classroom.nbgrader.export import marks_by_student
from autograder.classroom.nbgrader.extensions import end_of, kept
from autograder.classroom.nbgrader.hooks import FILTERS
from autograder.classroom.nbgrader.late_penalties import lateness_in
from autograder.classroom.nbgrader.quarantine import SECRET
from autograder.classroom.notes import other_names
from autograder.classroom.pages import filters
from autograder.classroom.pages.feedback_head import head
from autograder.classroom.report.own_marks import PLACE, NotebookMarks, all_marks
from autograder.classroom.term.due_dates import rules_in
from autograder.classroom.term.which_counts import TIMESTAMP

TEMPLATES = Path(filters.__file__).parent / "templates"
Resources = dict[str, Any]  # what nbconvert hands from step to step
_LOADED = re.compile(r"@font-face\s*\{[^}]*\}|@import[^;]*;|url\((?!['\"]?data:)[^)]*\)|/\*# sourceMappingURL[^*]*\*/")


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


@functools.cache
def _loading_nothing(style: str) -> str:
    """Return a style sheet without what a browser would load for it."""
    return _LOADED.sub("", style)


class FeedbackExporter(HTMLExporter):
    """Export pages that run no script and load nothing; only the first exporter of a process compiles the templates."""

    optimistic_validation = Bool(True).tag(config=True)  # check the notebook's format once, after all steps

    def _create_environment(self) -> Environment:
        environment: Environment = super()._create_environment()
        environment.bytecode_cache = _COMPILED
        environment.loader = ChoiceLoader([FileSystemLoader(TEMPLATES), environment.loader])
        return environment

    def default_filters(self) -> Iterator[tuple[str, Any]]:
        """Yield nbconvert's filters, and ours in place of those that read what a student wrote."""
        yield from super().default_filters()
        for name in FILTERS:
            yield name, getattr(filters, name)

    def _init_resources(self, resources: Resources | None) -> Resources:
        found: Resources = super()._init_resources(resources)
        include = found["include_css"]
        found["feedback_head"] = head
        found["include_css"] = lambda name: Markup(_loading_nothing(include(name)))  # nbgrader's own
        return found

    def from_notebook_node(
        self, nb: NotebookNode, resources: Resources | None = None, **others: Any
    ) -> tuple[str, Resources]:
        """Return the page; nbconvert would parse and write it anew to describe pictures, which ours are already."""
        made: tuple[str, Resources] = TemplateExporter.from_notebook_node(
            self, nb, self._init_resources(resources), **others
        )
        page, found = made
        return page.replace("<html>", '<html lang="en">', 1), found


class GradesAndExtension(GetGrades):
    """Show the marks, and above them an extension, and what lateness costs and why."""

    def preprocess(self, nb: NotebookNode, resources: Resources) -> tuple[NotebookNode, Resources]:
        """Show them in one notebook."""
        made: tuple[NotebookNode, Resources] = super().preprocess(nb, resources)
        names, rules = resources["nbgrader"], rules_in(self.config)
        with Gradebook(names["db_url"]) as gradebook:
            found = gradebook.find_submission(names["assignment"], names["student"])
            if found.extension and found.assignment.duedate:
                until = end_of(found.assignment.duedate, found.extension, rules, names["assignment"])
                nb.cells.insert(0, new_markdown_cell(f"**You had an extension until {until}.**"))
            of_student = lateness_in(gradebook, rules, names["student"]).get(names["student"], {})
            if late := of_student.get(names["assignment"]):
                nb.cells.insert(0, new_markdown_cell(f"**{late.sentence}**"))
        return made


class ReleaseToEach(ExchangeReleaseFeedback):
    """Release feedback for nbgrader, from the command line and from Formgrader."""

    src_path: str  # a pattern with * for the student

    def copy_files(self) -> None:
        """Release the feedback of each student who handed in through the exchange, and log the others."""
        pattern, excluded = self.src_path, self.coursedir.student_id_exclude
        without, shared = [], _shared_secrets(Path(pattern).parent.parent, Path(pattern).name)
        with Gradebook(self.coursedir.db_url, self.coursedir.course_id) as gradebook:
            extensions = kept(Path(self.config.GradeOutsideKernel.journal))
            marks = marks_by_student(gradebook, rules_in(self.config), extensions)
        for folder in sorted(Path("/").glob(f"{pattern.lstrip('/')}/")):
            student = folder.parent.name
            if not (folder / SECRET).is_file() or not (folder / TIMESTAMP).is_file():
                without.append(student)
                continue
            self.src_path = str(folder)
            try:
                if student in shared:
                    self._withdraw(folder, shared[student])
                    continue
                super().copy_files()
                self._add_marks(folder, marks.get(student, ()))
                self._under_other_names(folder)
            except (OSError, ValueError, AssertionError) as error:  # a student may have written anything into the two
                self.log.error("The feedback of %s was not released: %s", student, error)
        self.src_path, self.coursedir.student_id_exclude = pattern, excluded
        if without:
            self.log.warning(
                "Not handed in through the exchange, so their feedback can only be sent from %s: %s",
                Path(pattern).parent.parent,
                ", ".join(without),
            )

    def _withdraw(self, folder: Path, others: Sequence[str]) -> None:
        """Remove a page that `others` could fetch, too, and log it."""
        self.log.error(
            "The feedback of %s was not released, for it would be one file with that of %s: their folders hold the "
            "same %s, as a copied folder does. Ask them, and send each page from %s",
            *(folder.parent.name, ", ".join(others), SECRET, folder.parent.parent),
        )
        for name in (folder.name, *self._other_names(folder)):
            _page(Path(self.dest_path), (folder / SECRET).read_text(), name).unlink(missing_ok=True)

    def _add_marks(self, folder: Path, marks: Sequence[NotebookMarks]) -> None:
        """Put the student's marks for all notebooks with released feedback into the page that was released now."""
        to = Path(self.dest_path)
        released = _page(to, (folder / SECRET).read_text(), folder.name)
        if not released.is_file():
            return
        rows = [row for row in marks if self._is_released(folder.parent / row.notebook, to)]
        page = released.read_text(encoding="utf-8").replace(PLACE, all_marks(rows), 1)
        part = released.with_suffix(".part")
        shutil.copy(released, part)  # with its rights
        part.write_text(page, encoding="utf-8")
        part.replace(released)  # atomic, since a student may fetch it now

    def _is_released(self, folder: Path, to: Path) -> bool:
        secret = folder / SECRET
        return secret.is_file() and _page(to, secret.read_text(errors="replace"), folder.name).is_file()

    def _under_other_names(self, folder: Path) -> None:
        """Release the page of `folder` also under each other name that the student's nbgrader will request."""
        secret = (folder / SECRET).read_text()
        released = _page(Path(self.dest_path), secret, folder.name)
        for name in self._other_names(folder) if released.is_file() else ():
            page = _page(Path(self.dest_path), secret, name)
            shutil.copy(released, page.with_suffix(".part"))
            page.with_suffix(".part").replace(page)  # atomic, since a student may fetch it now

    def _other_names(self, folder: Path) -> list[str]:
        assignment, student = folder.name, folder.parent.name
        submitted = self.coursedir.format_path(self.coursedir.submitted_directory, student, assignment)
        quarantine = Path(self.config.GradeOutsideKernel.quarantine)
        return [Path(name).stem for name in other_names(Path(submitted, f"{assignment}.ipynb"), quarantine)]


def _shared_secrets(feedback: Path, assignment: str) -> dict[str, list[str]]:
    """Return the students whose secret for this notebook others have too, each with these others."""
    owners: dict[bytes, list[str]] = {}
    for path in sorted(feedback.glob(f"*/{assignment}/{SECRET}")):
        owners.setdefault(path.read_bytes().replace(b"\r\n", b"\n"), []).append(path.parent.parent.name)
    return {one: [other for other in names if other != one] for names in owners.values() for one in names if names[1:]}


def _page(folder: Path, secret: str, name: str) -> Path:
    """Return where nbgrader looks for the feedback on the notebook `name` of the hand-in that has this secret."""
    return folder / f"{notebook_hash(secret=secret, notebook_id=name)}.html"
