"""From a program to its graph."""

from course_lib.capture.captured import Captured
from course_lib.capture.capturing import capture
from course_lib.capture.comparing import compare_modes
from course_lib.capture.comparison import Comparison, ModeResult, Overview, overview
from course_lib.capture.log_panel import LogPanel, logged
from course_lib.capture.source import SourceLine

__all__ = [
    "Captured",
    "Comparison",
    "LogPanel",
    "ModeResult",
    "Overview",
    "SourceLine",
    "capture",
    "compare_modes",
    "logged",
    "overview",
]
