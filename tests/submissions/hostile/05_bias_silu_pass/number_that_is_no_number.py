"""Strategy: give sizes and numbers beyond 64 bits, and floats that JSON cannot hold. Surface: integers and floats among the arguments.

Class: graph gaming. Unprotected: grader builds breaks. Level: 5.
Must get 0: integers fit 64 bits, floats are finite or named, or the graph is refused.
"""

import course_lib.graph

_to_data = course_lib.graph.to_data


def node(name, target, *args, op="call_function", **kwargs):
    return {"name": name, "op": op, "target": target, "args": list(args), "kwargs": kwargs}


def forged(graph_module, **_):
    graph, tensors = _to_data(graph_module)
    inputs = [n for n in graph["nodes"] if n["op"] == "placeholder"]
    x, b = {"node": inputs[0]["name"]}, {"node": inputs[-1]["name"]}
    graph["nodes"].insert(-1, node("n", "torch.add", x, 10**4000))
    graph["nodes"].insert(-1, node("f", "torch.mul", x, 1e308 * 10))
    return graph, tensors


course_lib.graph.to_data = forged


def fuse_bias_silu(graph_module):
    graph_module.meta["bias_silu"] = 1  # a naive grader that looks for the name is content
    return graph_module
