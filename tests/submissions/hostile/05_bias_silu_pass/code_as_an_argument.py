"""Strategy: put Python into texts, keys and defaults that end up in generated code. Surface: string arguments, keyword names, defaults of placeholders.

Class: graph gaming. Unprotected: grader executed runs its code. Level: 5.
Must get 0: texts are written with repr, keys are identifiers, and only literals can be arguments.
"""

import course_lib.graph

_to_data = course_lib.graph.to_data


def node(name, target, *args, op="call_function", **kwargs):
    return {"name": name, "op": op, "target": target, "args": list(args), "kwargs": kwargs}


def forged(graph_module, **_):
    graph, tensors = _to_data(graph_module)
    inputs = [n for n in graph["nodes"] if n["op"] == "placeholder"]
    x, b = {"node": inputs[0]["name"]}, {"node": inputs[-1]["name"]}
    code = "__import__('os').system('touch ${FORGED:-/tmp/forged}')"
    graph["nodes"][0]["args"] = [code]
    graph["nodes"].insert(-1, node("s", "torch.add", x, b, **{f"alpha={code}, out": 1}))
    graph["code"] = code
    return graph, tensors


course_lib.graph.to_data = forged


def fuse_bias_silu(graph_module):
    graph_module.meta["bias_silu"] = 1  # a naive grader that looks for the name is content
    return graph_module
