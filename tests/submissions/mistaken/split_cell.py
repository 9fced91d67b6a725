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

# %% answer 05_bias_silu_pass = 12
ADD, MULTIPLY = [operator.add, torch.add, "add"], [operator.mul, torch.mul, "mul"]
SIGMOID = [torch.sigmoid, F.sigmoid, "sigmoid"]


def operand(node, i):
    return node.args[i] if i < len(node.args) else node.kwargs.get(("input", "other", "alpha")[i])


# %% split
def activated(node, modules):
    """What node applies SiLU to, and the sigmoid that helps."""
    if node.target is F.silu or (node.op == "call_module" and type(modules[node.target]) is nn.SiLU):
        return operand(node, 0), None
    if node.target in MULTIPLY:
        for a, b in ((0, 1), (1, 0)):
            total, gate = operand(node, a), operand(node, b)
            if isinstance(gate, fx.Node) and gate.target in SIGMOID and operand(gate, 0) is total:
                return total, gate
    return None, None


# %% split
def fuse_bias_silu(graph_module):
    modules = dict(graph_module.named_modules())
    for node in list(graph_module.graph.nodes):
        total, gate = activated(node, modules)
        if not isinstance(total, fx.Node) or total.target not in ADD or operand(total, 2) not in (None, 1):
            continue
        readers = {node, gate} - {None}
        if set(total.users) != readers or (gate is not None and set(gate.users) != {node}):
            continue
        pair = [operand(total, 0), operand(total, 1)]
        if not all(isinstance(p, fx.Node) and "tensor_meta" in p.meta for p in pair):
            continue
        pair.sort(key=lambda p: len(p.meta["tensor_meta"].shape), reverse=True)
        x, b = (p.meta["tensor_meta"] for p in pair)
        if len(x.shape) < 2 or tuple(b.shape) != (x.shape[-1],) or x.dtype != b.dtype:
            continue
        with graph_module.graph.inserting_before(total):
            fused = graph_module.graph.call_function(torch.ops.course_lib.bias_silu, tuple(pair))
        fused.meta.update(node.meta)
        node.replace_all_uses_with(fused)
        for old in (node, gate, total):
            if old is not None:
                graph_module.graph.erase_node(old)
    graph_module.recompile()
    return graph_module
