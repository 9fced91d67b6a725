"""Half right: attention without mask and dropout, three of five questions, a pass that knows one spelling.

Gets what it earned, check by check: nothing is lost in one exercise for a mistake in another.
"""

# %% answer 01_scaled_dot_product = 6.5
# loses masks (1.5 + 0.5) and dropout (1); gradients and calls in a row lose where a mask is part of them
def scaled_dot_product(query, key, value, mask=None, dropout_p=0.0):
    weights = F.softmax(query @ key.mT / math.sqrt(query.shape[-1]), dim=-1)
    return weights @ value, weights


# %% answer 04_read_a_graph = 1.6
# right: inputs, leaf modules, users of small graphs; dead and longest path are left open, repeats are counted twice
def read_graph(rows):
    uses = [used for row in rows for used in row["args"]]
    return {
        "inputs": [row["name"] for row in rows if row["op"] == "placeholder"],
        "leaf_modules": [row["name"] for row in rows if row["op"] == "call_module"],
        "two_users": [row["name"] for row in rows if uses.count(row["name"]) == 2],
        "dead": [],
        "longest_path": 0,
    }


# %% answer 05_bias_silu_pass = 6
def fuse_bias_silu(graph_module):
    fx.replace_pattern(graph_module, lambda x, b: F.silu(x + b), lambda x, b: torch.ops.course_lib.bias_silu(x, b))
    return graph_module
