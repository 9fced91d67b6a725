"""Look at a graph, count what it costs, and carry it to another process."""

from course_lib.graph.cost import Cost, cost, saved_for_backward
from course_lib.graph.data import from_data, to_data
from course_lib.graph.drawing import draw
from course_lib.graph.loops import scheduled
from course_lib.graph.nodes import count_operators, table
from course_lib.graph.shapes import propagate_shapes

__all__ = [
    "Cost",
    "cost",
    "count_operators",
    "draw",
    "from_data",
    "propagate_shapes",
    "saved_for_backward",
    "scheduled",
    "table",
    "to_data",
]
