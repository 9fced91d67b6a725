"""Strategy: write results into an input, a weight or a constant with out= and in-place operators. Surface: out=, add_, copy_, operator.iadd.

Class: graph gaming. Unprotected: grader builds gives full marks. Level: 5.
Must get 0: what a graph writes into its inputs must be what the program writes, its weights are the host's own copies, and every call counts.
"""

import course_lib.graph

_to_data = course_lib.graph.to_data


def node(name, target, *args, op="call_function", **kwargs):
    return {"name": name, "op": op, "target": target, "args": list(args), "kwargs": kwargs}


def forged(graph_module, **_):
    graph, tensors = _to_data(graph_module)
    inputs = [n for n in graph["nodes"] if n["op"] == "placeholder"]
    x, b = {"node": inputs[0]["name"]}, {"node": inputs[-1]["name"]}
    graph["nodes"].insert(-1, node("w", "torch.ops.course_lib.bias_silu", x, b))
    graph["nodes"].insert(-1, node("i", "add_", x, 0, op="call_method"))
    graph["nodes"].insert(-1, node("o", "copy_", b, b, op="call_method"))
    return graph, tensors


course_lib.graph.to_data = forged


def fuse_bias_silu(graph_module):
    graph_module.meta["bias_silu"] = 1  # a naive grader that looks for the name is content
    return graph_module
