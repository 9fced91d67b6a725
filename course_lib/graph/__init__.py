"""Look at a graph, count what it costs, and carry it to another process."""

from course_lib.graph.costs import Cost, cost
from course_lib.graph.counting import count_operators
from course_lib.graph.data import from_data, to_data
from course_lib.graph.diff_drawing import draw_diff
from course_lib.graph.diffing import GraphDiff, NodeChange, diff
from course_lib.graph.drawing import Drawing, draw
from course_lib.graph.inductor_counters import CompiledCost, compiled_cost
from course_lib.graph.joint import cut_at, joint_rows, saved_bytes
from course_lib.graph.living import LiveMemory, live_memory
from course_lib.graph.lowered import lowered
from course_lib.graph.naming import operator_name
from course_lib.graph.origins import source_of
from course_lib.graph.roofline import (
    Device,
    Roofline,
    measure_device,
    named_devices,
    predict,
    predict_launches,
    predict_ratio,
)
from course_lib.graph.saving import SavedForBackward, saved_for_backward
from course_lib.graph.scheduling import Loop, Scheduled, scheduled
from course_lib.graph.shapes import describe, propagate_shapes
from course_lib.graph.source_map import source_map
from course_lib.graph.tables import Table, table

__all__ = [
    "CompiledCost",
    "Cost",
    "Device",
    "Drawing",
    "GraphDiff",
    "LiveMemory",
    "Loop",
    "NodeChange",
    "Roofline",
    "SavedForBackward",
    "Scheduled",
    "Table",
    "compiled_cost",
    "cost",
    "count_operators",
    "cut_at",
    "describe",
    "diff",
    "draw",
    "draw_diff",
    "from_data",
    "joint_rows",
    "live_memory",
    "lowered",
    "measure_device",
    "named_devices",
    "operator_name",
    "predict",
    "predict_launches",
    "predict_ratio",
    "propagate_shapes",
    "saved_bytes",
    "saved_for_backward",
    "scheduled",
    "source_map",
    "source_of",
    "table",
    "to_data",
]
