"""The course's folders and nbgrader's interface to them, as nbgrader_config.py sets them."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from nbgrader.apps.api import NbGraderAPI
from traitlets.config.loader import PyFileConfigLoader

CONFIG = "nbgrader_config.py"


class NbgraderError(Exception):
    """nbgrader could not do what it was asked; the message ends with what it said."""


@dataclass(frozen=True)
class Course:
    """Where everything is. Folders of students are below ``submitted``, ``autograded`` and ``feedback``."""

    source: Path
    release: Path
    submitted: Path
    autograded: Path
    feedback: Path
    journal: Path
    seed_file: Path
    aside: Path  # what was taken out of submitted/, kept byte for byte
    api: NbGraderAPI = field(repr=False, compare=False)

    @property
    def assignments(self) -> tuple[str, ...]:
        """The assignments: folders of the source that hold a notebook of their own name."""
        return tuple(sorted(p.parent.name for p in self.source.glob("*/*.ipynb") if p.stem == p.parent.name))

    def do(self, step: str, *arguments: str) -> str:
        """Run one step of nbgrader, overwriting what an earlier run made, and return its log.

        Raises `NbgraderError` with the last lines of the log.
        """
        answer = getattr(self.api, step)(*arguments, force=True)
        if not answer["success"]:
            said = "\n".join(answer.get("log", answer.get("error", "")).strip().splitlines()[-12:])
            raise NbgraderError(f"nbgrader {step} {' '.join(arguments)} failed:\n{said}")
        return str(answer.get("log", ""))


def open_course(root: Path | None = None) -> Course:
    """The course whose nbgrader_config.py lies in ``root``: by default the working directory, or else this checkout."""
    here = Path.cwd() if (Path.cwd() / CONFIG).is_file() else Path(__file__).parents[3]
    config = PyFileConfigLoader(CONFIG, path=str(root or here)).load_config()
    api = NbGraderAPI(config=config)
    folders = api.coursedir
    ours = config.GradeOutsideKernel
    return Course(
        source=Path(folders.root) / folders.source_directory,
        release=Path(folders.root) / folders.release_directory,
        submitted=Path(folders.root) / folders.submitted_directory,
        autograded=Path(folders.root) / folders.autograded_directory,
        feedback=Path(folders.root) / folders.feedback_directory,
        journal=Path(ours.journal),
        seed_file=Path(ours.seed_file),
        aside=Path(ours.aside),
        api=api,
    )
