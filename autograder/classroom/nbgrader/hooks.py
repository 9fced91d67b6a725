"""List all changes to nbgrader: our classes that its configuration names, and patches of its modules.

`nbgrader_config.py` applies the settings in `HOOKS`. `PATCHES` lists the names in nbgrader's modules that are replaced
while one of its steps runs; no other module may replace any. Jupyter reads the configuration when it starts, so this
file imports neither torch nor the grader.
"""

import functools
import logging
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from nbgrader import api
from nbgrader.apps.zipcollectapp import ZipCollectApp
from sqlalchemy import Engine, create_engine

OURS = "autograder.classroom"
FILTERS = ("markdown2html", "highlight_code", "clean_html", "strip_files_prefix")  # of nbconvert's templates
MOST_DATABASES = 4  # databases whose engines are cached; a process usually grades one course


@dataclass(frozen=True)
class Hook:
    """One setting of nbgrader that names our code, alone or in a list with nbgrader's own steps."""

    setting: str  # as in nbgrader_config.py: the class and its trait
    value: str | tuple[str, ...] | Mapping[str, str]
    why: str

    @property
    def names(self) -> tuple[str, ...]:
        """Return the dotted names of the setting."""
        if isinstance(self.value, Mapping):
            return tuple(self.value.values())
        return (self.value,) if isinstance(self.value, str) else self.value

    @property
    def configured(self) -> str | list[str] | dict[str, str]:
        """Return the value as a configuration holds it."""
        if isinstance(self.value, Mapping):
            return dict(self.value)
        return self.value if isinstance(self.value, str) else list(self.value)


HOOKS = (
    Hook(
        "ExchangeFactory.collect",
        f"{OURS}.nbgrader.collect.CheckedCollect",
        "everybody can write into the exchange's inbound folder: see whose a hand-in is before it is taken",
    ),
    Hook(
        "ExchangeFactory.release_feedback",
        f"{OURS}.nbgrader.feedback.ReleaseToEach",
        "nbgrader stops at the first hand-in that did not come through the exchange",
    ),
    Hook(
        "Autograde.exporter_class",
        f"{OURS}.nbgrader.repair.SubmissionExporter",
        "a submission that cannot be read becomes an empty one with a reason, instead of vanishing from the gradebook",
    ),
    Hook(
        "Autograde.pre_convert_hook",
        f"{OURS}.nbgrader.quarantine.before_autograde",
        "nbgrader copies every file of a submission and follows links",
    ),
    Hook(
        "Autograde.sanitize_preprocessors",
        (
            "nbgrader.preprocessors.ClearOutput",
            f"{OURS}.nbgrader.repair.RepairMetadata",
            "nbconvert.preprocessors.sanitize.SanitizeHTML",
            "nbgrader.preprocessors.OverwriteKernelspec",
            "nbgrader.preprocessors.OverwriteCells",
            "nbgrader.preprocessors.CheckCellMetadata",
        ),
        "metadata is repaired instead of believed; HTML is escaped before our own report is added, which would be too",
    ),
    Hook(
        "Autograde.autograde_preprocessors",
        (
            f"{OURS}.nbgrader.outside_kernel.GradeOutsideKernel",
            "nbgrader.preprocessors.LimitOutput",
            "nbgrader.preprocessors.SaveAutoGrades",
            "nbgrader.preprocessors.AssignLatePenalties",
        ),
        "nbgrader would run the notebook in a kernel with the instructor's rights; the metadata, which none of these "
        "steps changes, was checked at the end of the steps before, and is not checked again",
    ),
    Hook(
        "GenerateFeedback.exporter_class",
        f"{OURS}.nbgrader.feedback.FeedbackExporter",
        "nbconvert's pages run scripts from elsewhere, and it compiles all templates of a page again for each student",
    ),
    Hook(
        "GenerateFeedback.preprocessors",
        (f"{OURS}.nbgrader.feedback.GradesAndExtension", "nbconvert.preprocessors.CSSHTMLHeaderPreprocessor"),
        "nbgrader's own tell a student nothing of an extension",
    ),
    Hook(
        "HTMLExporter.filters",
        {name: f"{OURS}.pages.filters.{name}" for name in FILTERS},
        "Formgrader shows what students wrote: nbconvert keeps links that run a script, and may take any time",
    ),
    Hook(
        "ExportApp.plugin_class",
        f"{OURS}.nbgrader.export.MarksExport",
        "nbgrader joins cells with commas, whatever stands in them",
    ),
    Hook(
        "AssignLatePenalties.plugin_class",
        f"{OURS}.nbgrader.late_penalties.LatePenalty",
        "nbgrader's own takes everything or nothing, and knows no late days",
    ),
    Hook(
        "ZipCollectApp.extractor_plugin",
        f"{OURS}.platforms.upload_archive.NotebookExtractor",
        "nbgrader unpacks whatever an archive holds, of any size",
    ),
    Hook(
        "ZipCollectApp.collector_plugin",
        f"{OURS}.platforms.uploads.UploadCollector",
        "nbgrader does not know the names that learning platforms give to files, nor the numbers of the roster",
    ),
)

PATCHES = {
    "nbgrader.apps.zipcollectapp.ZipCollectApp.start": "nbgrader ends with status 0 whatever was left out of an "
    "archive, names it among hundreds of lines, and writes several lines for each student where all is well",
    "nbgrader.api.create_engine": "nbgrader opens a dozen gradebooks for a hand-in, each with an engine of its own, "
    "which would compile every statement again; its steps are told the database's address, and cannot be given one",
}


def install(config: Any) -> None:
    """Apply all settings in `HOOKS` to nbgrader's configuration."""
    for hook in HOOKS:
        part, trait = hook.setting.split(".")
        config[part][trait] = hook.configured
    ZipCollectApp.start = _collect_quietly
    # Formgrader's page loads MathJax from elsewhere, so ours extends it; feedback has its own exporter
    templates = Path(__file__).parents[1] / "pages/templates"
    config.HTMLExporter.template_file = str(templates / "manual_view.html.j2")
    config.FeedbackExporter.template_file = "feedback_page.html.j2"


_collect = ZipCollectApp.start


def _collect_quietly(app: ZipCollectApp) -> None:
    """Collect an archive, show only errors of nbgrader's steps, then end with the collector's line and status."""
    shown = app.log_level
    app.log_level = shown if shown == logging.DEBUG else logging.ERROR
    try:
        _collect(app)
    finally:
        app.log_level = shown
    if status := app.collector_plugin_inst.finish():
        app.exit(status)


@contextmanager
def kept_engine() -> Iterator[None]:
    """Let each `nbgrader.api.Gradebook` in the block reuse the engine of the previous one.

    The engine caches compiled SQL statements. Its connections are not reused, since closing a gradebook closes them.

    >>> with kept_engine():
    ...     course.api.autograde("04_fx_capture", "ada")
    """
    before = api.create_engine
    api.create_engine = _engine
    try:
        yield
    finally:
        api.create_engine = before


@functools.lru_cache(MOST_DATABASES)
def _engine(url: str, *, echo: bool, future: bool) -> Engine:
    return create_engine(url, echo=echo, future=future)
