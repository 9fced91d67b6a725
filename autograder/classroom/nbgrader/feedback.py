"""Give feedback back through nbgrader's exchange, to everybody who handed in there.

nbgrader stops at the first feedback without the two files that it leaves beside a hand-in. A student who handed in
another way, or nothing, has none; that is said, and the others get theirs.

A student's nbgrader asks for feedback by the names of the files that were handed in. Where one had another name than
the notebook's, the page is released under that name too.
"""

from __future__ import annotations

import shutil
from pathlib import Path

from nbgrader.exchange.default import ExchangeReleaseFeedback
from nbgrader.utils import notebook_hash

from autograder.classroom.nbgrader.guard import SECRET, TIMESTAMP, other_names


class ReleaseToEach(ExchangeReleaseFeedback):
    """nbgrader's release of feedback, from the command line and from Formgrader alike."""

    src_path: str  # a pattern with * for the student

    def copy_files(self) -> None:
        """Release what can be; name the others."""
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
            except (OSError, ValueError) as error:  # the two files are as the student wrote them
                self.log.error("The feedback of %s was not released: %s", student, error)
        self.src_path, self.coursedir.student_id_exclude = pattern, excluded
        if without:
            self.log.warning(
                "Not handed in through the exchange, so their feedback can only be sent from %s: %s",
                Path(pattern).parent.parent,
                ", ".join(without),
            )

    def _under_other_names(self, folder: Path) -> None:
        """Release the page of ``folder`` once more for each name by which its student's nbgrader will ask."""
        assignment, student, secret = folder.name, folder.parent.name, (folder / SECRET).read_text()
        submitted = self.coursedir.format_path(self.coursedir.submitted_directory, student, assignment)
        aside = Path(self.config.GradeOutsideKernel.aside)
        released = _page(Path(self.dest_path), secret, assignment)
        for name in other_names(Path(submitted, f"{assignment}.ipynb"), aside) if released.is_file() else ():
            page = _page(Path(self.dest_path), secret, Path(name).stem)
            shutil.copy(released, page.with_suffix(".part"))
            page.with_suffix(".part").replace(page)  # whole or not at all, for whoever fetches meanwhile


def _page(folder: Path, secret: str, name: str) -> Path:
    """Where nbgrader looks for the feedback on the notebook ``name`` of the hand-in that has this secret."""
    return folder / f"{notebook_hash(secret=secret, notebook_id=name)}.html"
