"""Strategy: make the host build a layer of a million times a million parameters. Surface: constructor arguments of an allowed module.

Class: graph gaming. Unprotected: grader builds breaks. Level: 5.
Must get 0: modules are built without memory, and their tensors have to come with the graph.
"""

import course_lib.graph
from torch import nn

_to_data = course_lib.graph.to_data


def _huge(graph_module, **_):
    graph, tensors = _to_data(graph_module)
    graph["modules"]["huge"] = {
        "class": "torch.nn.Linear",
        "arguments": {"in_features": 1_000_000, "out_features": 1_000_000, "bias": True},
        "training": False,
    }
    return graph, tensors


course_lib.graph.to_data = _huge


def fuse_bias_silu(graph_module):
    graph_module.bias_silu = nn.Identity()
    return graph_module
