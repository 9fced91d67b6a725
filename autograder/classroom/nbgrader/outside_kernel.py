"""Grade in a step of nbgrader without a kernel: marks come from our record of the submission.

The grader reads the submitted file and grades it once, under one key of the journal. The notebook that nbgrader passes
through its steps is only displayed. A student's failure gives a mark of 0 with a reason. A failure of the grader
raises, so that nbgrader keeps the submission as "needs autograding" and nobody loses points.
"""

import functools
import math
import time
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from nbformat import NotebookNode
from nbformat.v4 import new_output
from nbgrader import utils
from nbgrader.preprocessors import NbGraderPreprocessor
from traitlets import Bool, Unicode

from autograder.classroom.batch import Journal, JournalError, find_record, secret_seed
from autograder.classroom.exercise_versions import POINTS
from autograder.classroom.hand_in import HandedIn, read_hand_in
from autograder.classroom.nbgrader.repair import NOTEBOOK_KEY
from autograder.classroom.pages.feedback_head import KEY, said_of
from autograder.course_settings import DEVICES, Settings, SettingsError, is_device_choice, read_settings
from autograder.exercises import find
from autograder.exercises.answer_cells import CHECK
from autograder.host.records import ExerciseRecord, ExerciseStatus, SubmissionRecord
from autograder.host.report import exercise_html
from autograder.host.report.wording import number
from autograder.host.sandbox import Sandbox, open_sandbox

JOURNAL_WAIT_S = 60.0


class NotGradedError(Exception):
    """The submission could not be graded for a reason that is not the student's."""


class GradeOutsideKernel(NbGraderPreprocessor):
    """Write each exercise's mark and report as the output of its check cell, in place of nbgrader's step Execute."""

    journal = Unicode(help="file of the journal of gradings").tag(config=True)
    seed_file = Unicode(help="file of the secret seed").tag(config=True)
    quarantine = Unicode(help="folder of what was taken out of submitted/").tag(config=True)
    sandbox = Unicode("auto", help="isolation level: auto, or 1 to 5").tag(config=True)
    trust = Bool(False, help="allow level 5, which isolates nothing").tag(config=True)
    settings = Unicode(help="file course.toml, with the device and whether a CPU's times earn points").tag(config=True)
    device = Unicode("", help="what answers compute on, before what the file says").tag(config=True)
    measured = Bool(None, allow_none=True, help="as `measured` in the file, and before it").tag(config=True)

    def preprocess(self, nb: NotebookNode, resources: Any) -> tuple[NotebookNode, Any]:
        """Grade one notebook, or read its record from the journal."""
        names = resources["nbgrader"]
        hand_in = self._hand_in(names["student"], names["assignment"], names["notebook"])
        record = self._record(hand_in)
        graded = {one.id: one for one in record.exercises}
        notes = tuple(dict.fromkeys((*hand_in.remarks, *nb.metadata.get(NOTEBOOK_KEY, {}).get("notes", ()))))
        for cell in nb.cells:
            if cell.cell_type == "code" and utils.is_grade(cell) and not utils.is_solution(cell):
                name = cell.metadata.nbgrader["grade_id"]
                exercise = graded.get(name.removesuffix(CHECK))
                if exercise is None:
                    raise NotGradedError(
                        f"The cell {name} carries points, but no exercise of the grader belongs to it."
                    )
                write_mark(cell, exercise, notes, title=find(exercise.id).title)
        return nb, resources

    def _record(self, hand_in: HandedIn) -> SubmissionRecord:
        record = find_record(Path(self.journal), hand_in.key)
        if record is None:
            self.log.info("Grading %s of %s outside the kernel", hand_in.assignment, hand_in.student)
            sandbox = _open_once(self.sandbox, self.trust, self._chosen())
            record = hand_in.grade(sandbox=sandbox, seed=secret_seed(Path(self.seed_file)))
            write_down(record, Path(self.journal))
        return record

    def _chosen(self) -> Settings:
        """Return the course's settings; raises `NotGradedError` if one is wrong, since another device changes marks."""
        try:
            found = read_settings(Path(self.settings)) if self.settings else Settings()
        except SettingsError as error:
            raise NotGradedError(str(error)) from None
        if self.device and not is_device_choice(self.device):
            raise NotGradedError(f"GradeOutsideKernel.device is {self.device!r}; expected {DEVICES}.")
        return Settings(self.device or found.device, found.measured if self.measured is None else self.measured)

    def _hand_in(self, student: str, assignment: str, notebook: str) -> HandedIn:
        """Return the hand-in that the exporter, `self.parent`, has read. Its parent is nbgrader's converter."""
        course = self.parent.parent.coursedir
        path = Path(course.format_path(course.submitted_directory, student, assignment)) / f"{notebook}.ipynb"
        read: HandedIn | None = getattr(self.parent, "hand_in", None)
        if read is not None and (read.assignment, read.student, read.path.name) == (assignment, student, path.name):
            return read
        return read_hand_in(assignment, student, path, Path(self.quarantine))


@functools.cache
def _open_once(level: str, trust: bool, chosen: Settings) -> Sandbox:
    # cached, because probing the machine's isolation takes seconds and nbgrader calls this for every submission
    return open_sandbox(
        "auto" if level == "auto" else int(level), trust=trust, device=chosen.device, measured=chosen.measured
    )


def without_mark(exercises: Iterable[ExerciseRecord]) -> str:
    """Return why the first exercise without a mark has none; empty if all have one."""
    for exercise in exercises:
        if exercise.status is ExerciseStatus.UNDECIDED:
            return f"Undecided, so without a mark. {exercise.message}"
        if exercise.status is ExerciseStatus.GRADER_ERROR:
            return f"Not graded, for no fault of the student: {exercise.message}"
    return ""


def write_down(record: SubmissionRecord, path: Path, *, wait_s: float = JOURNAL_WAIT_S) -> None:
    """Append `record` to the journal, waiting for another writer.

    Raises `NotGradedError` for a record without a mark, because it is not a result.
    """
    if why := without_mark(record.exercises):
        raise NotGradedError(f"{record.assignment} of {record.student}: {why}")
    deadline = time.monotonic() + wait_s
    while True:
        try:
            with Journal(path) as journal:
                journal.append(record)
                return
        except JournalError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.2)


def write_mark(cell: NotebookNode, exercise: ExerciseRecord, notes: Sequence[str] = (), *, title: str = "") -> None:
    """Set the only output of the check cell: the mark as a built-in float for nbgrader, and the report as HTML."""
    most = float(cell.metadata.nbgrader["points"])
    mark = mark_of(exercise, most)
    report = exercise_html(exercise, notes=(*notes, *_scaled(exercise, most)))
    data = {"text/plain": repr(mark), "text/html": str(report)}
    said = {KEY: said_of(exercise, title)}  # for the head of the feedback page
    cell.outputs = [new_output("execute_result", data=data, metadata=said, execution_count=1)]
    cell.execution_count = 1


def mark_of(exercise: ExerciseRecord, most: float) -> float:
    """Return the mark of a cell worth `most` points: the share of the assessed points, times `most`."""
    if why := without_mark([exercise]):
        raise NotGradedError(f"{exercise.id}: {why}")
    if most == 0:
        return 0.0
    if exercise.max_points <= 0:
        raise NotGradedError(f"Nothing of {exercise.id} could be assessed on this machine; grade it on another one.")
    share = float(exercise.points) / float(exercise.max_points)
    if not math.isfinite(share):
        raise NotGradedError(f"{exercise.id} has {exercise.points} of {exercise.max_points} points, which is no share.")
    return min(max(round(share * most, 4), 0.0), most)


def _scaled(exercise: ExerciseRecord, most: float) -> list[str]:
    if most == 0:
        return ["Your instructor left this exercise out of the marks: it is graded and shown, and counts nothing."]
    if math.isclose(exercise.max_points, most):
        return []
    assessed, whole = number(exercise.max_points), number(most)
    if exercise.version.get(POINTS, f"{most:g}") != f"{most:g}":
        then = exercise.version[POINTS]
        return [f"It was worth {then} points when this was graded; what you earned of them was scaled to {whole}."]
    return [f"{assessed} of {whole} points could be assessed here; what you earned of them was scaled to {whole}."]
