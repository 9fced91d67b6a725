"""Hands in files that are no notebooks: one cut off by a full disk, one under a name that the browser chose, one missing.

Gets 0 with a clear sentence for what cannot be read or is not there, and full marks for the renamed notebook.
"""

# %% answer 01_scaled_dot_product = 10
def scaled_dot_product(query, key, value, mask=None, dropout_p=0.0):
    scores = query @ key.transpose(-1, -2) / query.shape[-1] ** 0.5
    if mask is not None:
        scores = torch.where(mask, scores, float("-inf"))
    weights = scores.softmax(-1)
    if mask is not None:
        weights = torch.where(mask, weights, 0.0)
    weights = F.dropout(weights, dropout_p)
    return weights @ value, weights


# %% do 01_transformer rename

# %% answer 04_read_a_graph = 0
def read_graph(rows):
    return {}


# %% do 04_fx_capture cut_off

# %% answer 05_bias_silu_pass = 0
def fuse_bias_silu(graph_module):
    return graph_module


# %% do 05_fx_rewrite replace_by_text
