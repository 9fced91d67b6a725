"""Strategy: use operators that read files or run code: from_file, load, hub. Surface: torch.from_file, torch.load, torch.hub, torch.ops.aten.from_file.

Class: graph gaming. Unprotected: grader claims gives full marks. Level: 5.
Must get 0: functions are looked up in a table of names that reach no file.
"""

import course_lib.graph

_to_data = course_lib.graph.to_data


def node(name, target, *args, op="call_function", **kwargs):
    return {"name": name, "op": op, "target": target, "args": list(args), "kwargs": kwargs}


def forged(graph_module, **_):
    graph, tensors = _to_data(graph_module)
    inputs = [n for n in graph["nodes"] if n["op"] == "placeholder"]
    x, b = {"node": inputs[0]["name"]}, {"node": inputs[-1]["name"]}
    for number, target in enumerate(("torch.from_file", "torch.load", "torch.hub.load", "torch.ops.aten.from_file.default", "torch._C._jit_pass_lint")):
        graph["nodes"].insert(-1, node(f"n{number}", target, "/etc/passwd", True, 10))
    return graph, tensors


course_lib.graph.to_data = forged


def fuse_bias_silu(graph_module):
    graph_module.meta["bias_silu"] = 1  # a naive grader that looks for the name is content
    return graph_module
