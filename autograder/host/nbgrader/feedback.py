"""Give feedback back through nbgrader's exchange, to everybody who handed in there.

nbgrader stops at the first feedback without the two files that it leaves beside a hand-in. A student who handed in
another way, or nothing, has none; that is said, and the others get theirs.
"""

from __future__ import annotations

from pathlib import Path

from nbgrader.exchange.default import ExchangeReleaseFeedback

from autograder.host.nbgrader.guard import SECRET, TIMESTAMP


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
            super().copy_files()
        self.src_path, self.coursedir.student_id_exclude = pattern, excluded
        if without:
            self.log.warning(
                "Not handed in through the exchange, so their feedback can only be sent from %s: %s",
                Path(pattern).parent.parent,
                ", ".join(without),
            )
