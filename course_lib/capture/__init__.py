"""Capture the graph of a program."""

from course_lib.capture.captured import Captured
from course_lib.capture.comparison import Comparison, compare_modes
from course_lib.capture.log_panel import logged
from course_lib.capture.modes import capture

__all__ = ["Captured", "Comparison", "capture", "compare_modes", "logged"]
