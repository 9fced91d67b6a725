"""Show results: one table for texts and notebooks, one way to write quantities with their units."""

from course_lib.show.table import Cell, Table
from course_lib.show.units import format_bytes, format_count, format_us

__all__ = ["Cell", "Table", "format_bytes", "format_count", "format_us"]
