"""Strategy: keep the host busy with a graph of thousands of nodes. Surface: the size of the graph's data.

Class: graph gaming. Unprotected: grader claims gives full marks. Level: 5.
Must get 0: the number of nodes is bounded by the program's own.
"""

import course_lib.graph

_to_data = course_lib.graph.to_data


def _padded(graph_module, **_):
    graph, tensors = _to_data(graph_module)
    output = graph["nodes"].pop()
    last = graph["nodes"][-1]["name"]
    for i in range(3_000):
        node = {"op": "call_function", "target": "torch.ops.course_lib.bias_silu", "kwargs": {}}
        graph["nodes"].append({"name": f"n{i}", "args": [{"node": last}, {"node": "b"}], **node})
        last = f"n{i}"
    graph["nodes"].append(output)
    return graph, tensors


course_lib.graph.to_data = _padded


def fuse_bias_silu(graph_module):
    return graph_module
