"""The grader that everybody writes first: it runs the answer in its own process and believes what it sees there.

Run as `python naive_grader.py EXERCISE FILE`; the last line on standard output that holds a score is the verdict. It
exists so that every hostile answer can prove that it fools someone; nothing outside the tests uses it.
"""

import json
import math
import operator
import sys
from pathlib import Path

import torch
from torch import fx, nn
from torch.nn import functional as F

import course_lib.graph
import course_lib.kernels

NAMESPACE = {"math": math, "operator": operator, "torch": torch, "fx": fx, "nn": nn, "F": F, "__name__": "answer"}


def score_scaled_dot_product(answer):
    torch.manual_seed(0)
    query, key, value = torch.randn(3, 2, 3, 4, 8)
    probabilities = torch.softmax(query @ key.transpose(-1, -2) / math.sqrt(8), -1)
    expected = (probabilities @ value, probabilities)
    context, shares = answer(query, key, value)
    return float(torch.allclose(context, expected[0], atol=1e-5) and torch.allclose(shares, expected[1], atol=1e-5))


def score_read_graph(answer):
    rows = [{"name": "x", "op": "placeholder", "target": "x", "args": []}]
    expected = {"inputs": ["x"], "dead": [], "two_users": [], "leaf_modules": [], "longest_path": 1}
    return float(answer(rows) == expected)


def score_fuse_bias_silu(answer):
    """Believes the exported graph: rebuilds it by following names, and a claim to be fused where there is one."""
    program = fx.symbolic_trace(lambda x, b: F.silu(x + b))
    x, b = torch.zeros(4, 8), torch.zeros(8)
    expected = program(x, b)
    result = answer(program)
    fused = "bias_silu" in str(vars(result)) + result.code
    try:
        data, _ = course_lib.graph.to_data(result)
    except Exception:  # the naive grader only wants to know whether there is a graph
        return float(fused and torch.allclose(result(x, b), expected, atol=1e-2))
    for node in data["nodes"]:
        if node["target"] == "os.system":
            import os

            os.system(node["args"][0])
            return 1.0
        if {"node": node["name"]} in node["args"]:
            return 1.0  # would loop for ever: the grader hangs, and with it the class
    if len(data["nodes"]) > 1_000:
        return 1.0  # believes that a graph full of fused calls is fused
    if "huge" in data["modules"]:
        arguments = data["modules"]["huge"]["arguments"]
        return float(arguments["in_features"] * arguments["out_features"] > 1e9)  # would have asked for 4 TB
    return float((fused or data.get("fused") == 1) and torch.allclose(result(x, b), expected, atol=1e-2))


def main(exercise, path):
    source = Path(path).read_text()
    entry = {"01": "scaled_dot_product", "04": "read_graph", "05": "fuse_bias_silu"}[exercise[:2]]
    namespace = dict(NAMESPACE)
    exec(compile(source, path, "exec"), namespace)
    score = {"01": score_scaled_dot_product, "04": score_read_graph, "05": score_fuse_bias_silu}[exercise[:2]]
    print(json.dumps({"score": score(namespace[entry])}))


if __name__ == "__main__":
    main(*sys.argv[1:])
