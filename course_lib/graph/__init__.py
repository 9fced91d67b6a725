"""Look at a graph, count what it costs, and carry it to another process."""

from course_lib.graph.data import from_data, to_data

__all__ = ["from_data", "to_data"]
