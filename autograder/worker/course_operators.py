"""The course's own operators, registered only where a graph calls one: that takes longer than running a small graph."""

import importlib

from autograder.protocol import GraphData

PREFIX = "torch.ops.course_lib."


def register_for(graph: GraphData) -> None:
    """Register what a graph calls, given as the data that the host has checked."""
    if any(node["target"].startswith(PREFIX) for node in graph["nodes"]):
        importlib.import_module("course_lib.kernels")
