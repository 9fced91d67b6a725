"""Plugs the grader into nbgrader's cycle: release, autograde, feedback, export. Only this package imports nbgrader."""

from autograder.classroom.nbgrader.course import Course, open_course
from autograder.classroom.nbgrader.guard import Guarded, guard_submissions
from autograder.classroom.nbgrader.outside_kernel import GradeOutsideKernel, NotGradedError
from autograder.classroom.nbgrader.reading import SubmissionExporter
from autograder.classroom.nbgrader.repair import RepairMetadata

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
