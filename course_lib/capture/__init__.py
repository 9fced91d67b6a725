"""From a program to its graph."""

from course_lib.capture.capturing import Captured, capture
from course_lib.capture.source import SourceLine

__all__ = ["Captured", "SourceLine", "capture"]
