"""Three common misconceptions: scores divided by the head size instead of its root, a path measured in edges instead of
nodes, and a sum fused although it is read elsewhere.

Gets the points of what does not depend on them, and messages that name them.
"""

# %% answer 01_scaled_dot_product = 7
# wrong: the scale, in two checks (1.5 each); every other check grants it
def scaled_dot_product(query, key, value, mask=None, dropout_p=0.0):
    scores = query @ key.transpose(-2, -1) / query.shape[-1]
    if mask is not None:
        scores = scores.masked_fill(~mask, -math.inf)
    weights = scores.softmax(-1)
    if mask is not None:
        weights = weights.masked_fill(~mask, 0)
    weights = F.dropout(weights, dropout_p, training=True)
    return weights @ value, weights


# %% answer 04_read_a_graph = 4
# wrong: the longest path, of small graphs (1) and of large ones (1)
def read_graph(rows):
    readers = {row["name"]: [r["name"] for r in rows if row["name"] in r["args"]] for row in rows}
    live = {"output"}
    for row in reversed(rows):
        if live & set(readers[row["name"]]):
            live.add(row["name"])
    length = {}
    for row in rows:
        before = [length[used] for used in row["args"] if length[used]]
        length[row["name"]] = 1 if row["op"] == "placeholder" else max(before) + 1 if before else 0
    return {
        "inputs": [row["name"] for row in rows if row["op"] == "placeholder"],
        "leaf_modules": [row["name"] for row in rows if row["op"] == "call_module"],
        "two_users": [name for name, found in readers.items() if len(found) == 2],
        "dead": [row["name"] for row in rows if row["name"] not in live and row["op"] != "placeholder"],
        "longest_path": length["output"] - 1 if length["output"] else 0,
    }


# %% answer 05_bias_silu_pass = 7.2
# wrong: the sum that is read twice (2.4), SiLU by hand (0.6), sums needed elsewhere; one of them changes a program
def fuse_bias_silu(graph_module):
    graph = graph_module.graph
    modules = dict(graph_module.named_modules())
    for node in list(graph.nodes):
        is_silu = node.target is F.silu or node.op == "call_module" and isinstance(modules[node.target], nn.SiLU)
        if not is_silu:
            continue
        total = node.args[0] if node.args else node.kwargs["input"]
        if total.target not in (operator.add, torch.add, "add") or total.kwargs.get("alpha", 1) != 1:
            continue
        pair = [*total.args, *(total.kwargs[k] for k in ("input", "other") if k in total.kwargs)][:2]
        if not all(isinstance(p, fx.Node) for p in pair):
            continue
        # how often somebody else reads the sum is not asked
        x, b = sorted(pair, key=lambda p: -len(p.meta["tensor_meta"].shape))
        mx, mb = x.meta["tensor_meta"], b.meta["tensor_meta"]
        if mb.shape != mx.shape[-1:] or len(mx.shape) < 2 or mx.dtype != mb.dtype:
            continue
        with graph.inserting_after(total):
            fused = graph.call_function(torch.ops.course_lib.bias_silu, (x, b))
        fused.meta = dict(node.meta)
        node.replace_all_uses_with(fused)
        graph.erase_node(node)
        if not total.users:
            graph.erase_node(total)
    graph_module.recompile()
    return graph_module
