"""Strategy: send thousands of modules that no node names. Surface: the lists beside the nodes.

Class: graph gaming. Unprotected: grader builds breaks. Level: 5.
Must get 0: their number is bounded, and each has to be used.
"""

import course_lib.graph

_to_data = course_lib.graph.to_data


def node(name, target, *args, op="call_function", **kwargs):
    return {"name": name, "op": op, "target": target, "args": list(args), "kwargs": kwargs}


def forged(graph_module, **_):
    graph, tensors = _to_data(graph_module)
    inputs = [n for n in graph["nodes"] if n["op"] == "placeholder"]
    x, b = {"node": inputs[0]["name"]}, {"node": inputs[-1]["name"]}
    entry = {"class": "torch.nn.Linear", "arguments": {"in_features": 2**30, "out_features": 2**30, "bias": True}, "training": False}
    graph["modules"] |= {f"m{number}": entry for number in range(3_000)}
    return graph, tensors


course_lib.graph.to_data = forged


def fuse_bias_silu(graph_module):
    graph_module.meta["bias_silu"] = 1  # a naive grader that looks for the name is content
    return graph_module
