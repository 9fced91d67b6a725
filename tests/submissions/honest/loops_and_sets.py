"""Everything right, written step by step: loops, sets, a graph edited in place.

Gets full marks: it handles masks, dropout and fully masked rows, counts users once, and refuses every look-alike.
"""

# %% answer 01_scaled_dot_product = 10
def scaled_dot_product(query, key, value, mask=None, dropout_p=0.0):
    scores = query @ key.transpose(-2, -1)
    scores = scores / math.sqrt(query.size(-1))
    if mask is not None:
        scores = scores.masked_fill(~mask, float("-inf"))
    probabilities = scores.softmax(dim=-1)
    if mask is not None:
        # a row without any key has become NaN
        probabilities = probabilities.masked_fill(~mask, 0.0)
    if dropout_p > 0:
        probabilities = F.dropout(probabilities, p=dropout_p, training=True)
    return probabilities @ value, probabilities


# %% answer 04_read_a_graph = 6
def read_graph(rows):
    users = {row["name"]: set() for row in rows}
    for row in rows:
        for used in row["args"]:
            users[used].add(row["name"])

    needed = set()
    for row in reversed(rows):
        if row["op"] == "output" or users[row["name"]] & needed:
            needed.add(row["name"])

    inputs, leaf_modules, two_users, dead = [], [], [], []
    longest = {}
    for row in rows:
        name = row["name"]
        if row["op"] == "placeholder":
            inputs.append(name)
        elif name not in needed:
            dead.append(name)
        if row["op"] == "call_module":
            leaf_modules.append(name)
        if len(users[name]) == 2:
            two_users.append(name)
        if row["op"] == "placeholder":
            longest[name] = 1
        else:
            before = [longest[used] for used in row["args"] if longest[used] > 0]
            longest[name] = max(before) + 1 if before else 0
        if row["op"] == "output":
            length = longest[name]
    return {
        "inputs": inputs,
        "leaf_modules": leaf_modules,
        "two_users": two_users,
        "dead": dead,
        "longest_path": length,
    }


# %% answer 05_bias_silu_pass = 12
SUM = (operator.add, torch.add, "add")
PRODUCT = (operator.mul, torch.mul, "mul")
SIGMOID = (torch.sigmoid, F.sigmoid, "sigmoid")


def argument(node, position, name, default=None):
    if len(node.args) > position:
        return node.args[position]
    return node.kwargs.get(name, default)


def is_call(node, targets):
    return isinstance(node, fx.Node) and node.op in ("call_function", "call_method") and node.target in targets


def find_sum(graph_module, node):
    """The sum that node activates, and the other nodes that belong to the activation."""
    if node.op == "call_module" and type(graph_module.get_submodule(node.target)) is nn.SiLU:
        return node.args[0], []
    if is_call(node, (F.silu,)):
        return argument(node, 0, "input"), []
    if is_call(node, PRODUCT):
        left, right = argument(node, 0, "input"), argument(node, 1, "other")
        for total, gate in ((left, right), (right, left)):
            if is_call(gate, SIGMOID) and argument(gate, 0, "input") is total:
                return total, [gate]
    return None, []


def is_bias_of(bias, x):
    if not (isinstance(bias, fx.Node) and isinstance(x, fx.Node)):
        return False
    b, data = bias.meta.get("tensor_meta"), x.meta.get("tensor_meta")
    if b is None or data is None or b.dtype != data.dtype or not b.dtype.is_floating_point:
        return False
    return len(b.shape) == 1 and len(data.shape) >= 2 and b.shape[0] == data.shape[-1]


def fuse_bias_silu(graph_module):
    graph = graph_module.graph
    for node in list(graph.nodes):
        total, gates = find_sum(graph_module, node)
        if not is_call(total, SUM) or argument(total, 2, "alpha", 1) != 1:
            continue
        if set(total.users) != {node, *gates} or any(set(gate.users) != {node} for gate in gates):
            continue
        left, right = argument(total, 0, "input"), argument(total, 1, "other")
        if is_bias_of(right, left):
            x, bias = left, right
        elif is_bias_of(left, right):
            x, bias = right, left
        else:
            continue
        # at the place of the sum: later, x may have been written to
        with graph.inserting_after(total):
            fused = graph.call_function(torch.ops.course_lib.bias_silu, (x, bias))
        fused.meta = dict(node.meta)
        node.replace_all_uses_with(fused)
        for old in (node, *gates, total):
            graph.erase_node(old)
    graph.lint()
    graph_module.recompile()
    return graph_module
