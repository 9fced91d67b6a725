"""Strategy: return random numbers of the right distribution. Surface: rand, randn, dropout.

Class: graph gaming. Unprotected: grader claims gives full marks. Level: 5.
Must get 0: values are compared one by one with the reference.
"""

import course_lib.graph

_to_data = course_lib.graph.to_data


def node(name, target, *args, op="call_function", **kwargs):
    return {"name": name, "op": op, "target": target, "args": list(args), "kwargs": kwargs}


def forged(graph_module, **_):
    graph, tensors = _to_data(graph_module)
    inputs = [n for n in graph["nodes"] if n["op"] == "placeholder"]
    x, b = {"node": inputs[0]["name"]}, {"node": inputs[-1]["name"]}
    graph["nodes"].insert(-1, node("fused", "torch.ops.course_lib.bias_silu", x, b))
    graph["nodes"].insert(-1, node("random", "torch.nn.functional.dropout", {"node": "fused"}, 0.5, True))
    graph["nodes"][-1]["args"] = [{"node": "random"}]
    return graph, tensors


course_lib.graph.to_data = forged


def fuse_bias_silu(graph_module):
    graph_module.meta["bias_silu"] = 1  # a naive grader that looks for the name is content
    return graph_module
