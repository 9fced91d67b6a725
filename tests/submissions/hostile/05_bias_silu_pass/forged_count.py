"""Strategy: hand in a graph that only claims to be fused: the count, the cost and the launch counter say so. Surface: extra keys, node metadata.

Class: graph gaming. Unprotected: grader claims gives full marks. Level: 5.
Must get 0: unknown keys are refused and the host counts nodes itself.
"""

import course_lib.graph

_to_data = course_lib.graph.to_data


def _claiming(graph_module, **_):
    graph, tensors = _to_data(graph_module)
    graph["cost"] = {"launches": 1, "bytes_read": 0, "bytes_written": 0}
    graph["fused"] = 1
    for node in graph["nodes"]:
        node["launches"] = 0
    return graph, tensors


course_lib.graph.to_data = _claiming


def fuse_bias_silu(graph_module):
    graph_module.fused = "course_lib.bias_silu"
    return graph_module
