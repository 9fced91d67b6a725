"""Right answers in a notebook that JupyterLab made: one graded cell was split, another copied, a check cell deleted.

Gets full marks: splitting and copying duplicate nbgrader's metadata, and stock nbgrader would stop the whole batch here.
"""

# %% answer 01_scaled_dot_product = 10
def attention_scores(query, key):
    return query @ key.transpose(-2, -1) / math.sqrt(query.shape[-1])


# %% split
def scaled_dot_product(query, key, value, mask=None, dropout_p=0.0):
    scores = attention_scores(query, key)
    if mask is not None:
        scores = scores.masked_fill(~mask, float("-inf"))
    weights = torch.nan_to_num(scores.softmax(-1))
    weights = F.dropout(weights, dropout_p)
    return weights @ value, weights


# %% answer 04_read_a_graph = 6
def read_graph(rows):
    return {}


# %% split
def read_graph(rows):
    by_name = {row["name"]: row for row in rows}
    alive, todo = set(), ["output"]
    while todo:
        name = todo.pop()
        if name not in alive:
            alive.add(name)
            todo.extend(by_name[name]["args"])
    depth = {}
    for row in rows:
        lengths = [depth[name] for name in row["args"] if depth[name]]
        depth[row["name"]] = 1 if row["op"] == "placeholder" else 1 + max(lengths) if lengths else 0
    return {
        "inputs": [row["name"] for row in rows if row["op"] == "placeholder"],
        "leaf_modules": [row["name"] for row in rows if row["op"] == "call_module"],
        "two_users": [n for n in by_name if sum(n in row["args"] for row in rows) == 2],
        "dead": [r["name"] for r in rows if r["name"] not in alive and r["op"] != "placeholder"],
        "longest_path": depth["output"],
    }


# %% do 04_fx_capture delete_check
