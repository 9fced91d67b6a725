"""Plugs the grader into nbgrader's cycle: release, autograde, feedback, export. Only this package imports nbgrader."""

from autograder.host.nbgrader.course import Course, open_course
from autograder.host.nbgrader.guard import Guarded, guard_submissions
from autograder.host.nbgrader.outside_kernel import GradeOutsideKernel, NotGradedError
from autograder.host.nbgrader.reading import SubmissionExporter
from autograder.host.nbgrader.repair import RepairMetadata

__all__ = [
    "Course",
    "GradeOutsideKernel",
    "Guarded",
    "NotGradedError",
    "RepairMetadata",
    "SubmissionExporter",
    "guard_submissions",
    "open_course",
]
