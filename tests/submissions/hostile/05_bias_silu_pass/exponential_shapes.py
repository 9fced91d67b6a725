"""Strategy: double a tensor forty times, each node as small as the next. Surface: cat, repeat, expand with contiguous.

Class: graph gaming. Unprotected: grader builds breaks. Level: 5.
Must get 0: the graph is rebuilt without running, is bounded by the program's own size, and runs in a worker with limits.
"""

import course_lib.graph

_to_data = course_lib.graph.to_data


def node(name, target, *args, op="call_function", **kwargs):
    return {"name": name, "op": op, "target": target, "args": list(args), "kwargs": kwargs}


def forged(graph_module, **_):
    graph, tensors = _to_data(graph_module)
    inputs = [n for n in graph["nodes"] if n["op"] == "placeholder"]
    x, b = {"node": inputs[0]["name"]}, {"node": inputs[-1]["name"]}
    last = x
    for number in range(40):
        graph["nodes"].insert(-1, node(f"double{number}", "torch.cat", [last, last]))
        last = {"node": f"double{number}"}
    graph["nodes"][-1]["args"] = [last]
    return graph, tensors


course_lib.graph.to_data = forged


def fuse_bias_silu(graph_module):
    graph_module.meta["bias_silu"] = 1  # a naive grader that looks for the name is content
    return graph_module
