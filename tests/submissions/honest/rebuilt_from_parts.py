"""Everything right, written in another way: einsum, recursion with a cache, a new graph instead of an edited one.

Gets full marks. The pass first decides which activations it may fuse, then copies the graph node by node.
"""

# %% answer 01_scaled_dot_product = 10
def scaled_dot_product(query, key, value, mask=None, dropout_p=0.0):
    scores = torch.einsum("bhqd,bhkd->bhqk", query * query.shape[-1] ** -0.5, key)
    allowed = torch.ones_like(scores, dtype=torch.bool) if mask is None else mask.expand(scores.shape)
    lowest = torch.finfo(scores.dtype).min
    weights = torch.softmax(torch.where(allowed, scores, lowest), dim=-1) * allowed
    if dropout_p:
        kept = torch.rand_like(weights) >= dropout_p
        weights = weights * kept / (1 - dropout_p)
    return torch.einsum("bhqk,bhkd->bhqd", weights, value), weights


# %% answer 04_read_a_graph = 6
from functools import cache


def read_graph(rows):
    row_of = {row["name"]: row for row in rows}
    output = next(row["name"] for row in rows if row["op"] == "output")

    def names(condition):
        return [row["name"] for row in rows if condition(row)]

    def user_count(name):
        return sum(name in row["args"] for row in rows)

    @cache
    def path(name):
        if row_of[name]["op"] == "placeholder":
            return 1
        below = max(map(path, row_of[name]["args"]), default=0)
        return below + 1 if below else 0

    reached, frontier = {output}, {output}
    while frontier:
        frontier = {used for name in frontier for used in row_of[name]["args"]} - reached
        reached |= frontier

    return {
        "inputs": names(lambda row: row["op"] == "placeholder"),
        "leaf_modules": names(lambda row: row["op"] == "call_module"),
        "two_users": names(lambda row: user_count(row["name"]) == 2),
        "dead": names(lambda row: row["name"] not in reached and row["op"] != "placeholder"),
        "longest_path": path(output),
    }


# %% answer 05_bias_silu_pass = 12
KINDS = {
    "sum": {operator.add, torch.add, "add"},
    "product": {operator.mul, torch.mul, "mul"},
    "gate": {torch.sigmoid, F.sigmoid, "sigmoid"},
    "silu": {F.silu},
}


def kind_of(node, modules):
    if not isinstance(node, fx.Node):
        return "not a node"
    if node.op == "call_module":
        return "silu" if type(modules[node.target]) is nn.SiLU else "other"
    if node.op not in ("call_function", "call_method"):
        return "other"
    return next((kind for kind, targets in KINDS.items() if node.target in targets), "other")


def inputs_of(node):
    named = dict(zip(("input", "other"), node.args)) | dict(node.kwargs)
    rest = {k: v for k, v in named.items() if k not in ("input", "other")}
    return named.get("input"), named.get("other"), rest


def described(node):
    meta = node.meta.get("tensor_meta") if isinstance(node, fx.Node) else None
    return (tuple(meta.shape), meta.dtype) if meta is not None else ((), None)


def data_and_bias(total):
    first, second, rest = inputs_of(total)
    if rest not in ({}, {"alpha": 1}):
        return None
    for data, bias in ((first, second), (second, first)):
        (shape, dtype), (bias_shape, bias_dtype) = described(data), described(bias)
        if dtype is not None and dtype == bias_dtype and len(shape) > 1 and bias_shape == shape[-1:]:
            return data, bias
    return None


def matches(graph, modules):
    """Yields (activation, sum, all nodes that the fused one replaces)."""
    for node in graph.nodes:
        kind = kind_of(node, modules)
        if kind == "silu":
            yield node, inputs_of(node)[0], {node}
        elif kind == "product":
            first, second, _ = inputs_of(node)
            for total, gate in ((first, second), (second, first)):
                if kind_of(gate, modules) == "gate" and inputs_of(gate)[0] is total and set(gate.users) == {node}:
                    yield node, total, {node, gate}


def fuse_bias_silu(graph_module):
    modules = dict(graph_module.named_modules())
    at_sum, gone = {}, set()
    for node, total, parts in matches(graph_module.graph, modules):
        if kind_of(total, modules) == "sum" and set(total.users) == parts and data_and_bias(total):
            at_sum[total] = node
            gone |= parts

    rebuilt, new = fx.Graph(), {}
    for node in graph_module.graph.nodes:
        if node in at_sum:
            operands = tuple(new[operand] for operand in data_and_bias(node))
            new[at_sum[node]] = rebuilt.call_function(torch.ops.course_lib.bias_silu, operands)
        elif node not in gone:
            new[node] = rebuilt.node_copy(node, new.__getitem__)
    rebuilt.lint()
    return fx.GraphModule(graph_module, rebuilt)
