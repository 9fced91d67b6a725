"""Half right: attention without mask and dropout, three of five questions, a pass that knows one spelling.

Gets what it earned, check by check: nothing is lost in one exercise for a mistake in another.
"""

# %% answer 01_scaled_dot_product = 5.5
# wrong: masks (3), rows that may attend to nothing (0.5), dropout (1); every other check grants the mask
def scaled_dot_product(query, key, value, mask=None, dropout_p=0.0):
    weights = F.softmax(query @ key.mT / math.sqrt(query.shape[-1]), dim=-1)
    return weights @ value, weights


# %% answer 04_read_a_graph = 1.5
# right: inputs, leaf modules, users where no node reads another twice; the rest is left open
def read_graph(rows):
    uses = [used for row in rows for used in row["args"]]
    return {
        "inputs": [row["name"] for row in rows if row["op"] == "placeholder"],
        "leaf_modules": [row["name"] for row in rows if row["op"] == "call_module"],
        "two_users": [row["name"] for row in rows if uses.count(row["name"]) == 2],
        "dead": [],
        "longest_path": 0,
    }


# %% answer 05_bias_silu_pass = 5.96, measured 6.96
# a pattern binds by position and knows one spelling; what it does to look-alikes costs every refusal but one
def fuse_bias_silu(graph_module):
    fx.replace_pattern(graph_module, lambda x, b: F.silu(x + b), lambda x, b: torch.ops.course_lib.bias_silu(x, b))
    return graph_module
