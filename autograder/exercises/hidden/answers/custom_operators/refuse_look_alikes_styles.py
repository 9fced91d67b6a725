# %% questions in a row
def is_safe(match):
    x, bias = match.kwargs["x"], match.kwargs["bias"]
    questions = (
        lambda: type(x) is fx.Node and type(bias) is fx.Node,
        lambda: not any(node.kwargs for node in match.nodes),
        lambda: all(u in match.nodes for n in match.nodes if n != match.output_node() for u in n.users),
        lambda: abs(match.kwargs["half"] - 0.5) < 1e-9,
        lambda: abs(match.kwargs["scale"] ** 2 - 0.5) < 1e-9,
        lambda: abs(match.kwargs["one"] - 1) < 1e-9,
        lambda: (x.meta["val"].shape[-1],) == tuple(bias.meta["val"].shape),
        lambda: x.meta["val"].dtype is bias.meta["val"].dtype,
    )
    return all(question() for question in questions)


def fuse_bias_gelu(graph_module):
    fuse_loosely(graph_module, is_safe)
    return graph_module


# %% objections that are raised
class NotSafeError(Exception):
    pass


def require(holds):
    if not holds:
        raise NotSafeError


def look(match):
    given = dict(match.kwargs)
    x, bias = (given[name].meta["val"] for name in ("x", "bias"))
    require(bias.dim() == 1 and bias.numel() == x.size(-1))
    require(x.dtype == bias.dtype)
    for name, right in {"half": 1 / 2, "scale": 1 / math.sqrt(2), "one": 1.0}.items():
        require(math.isclose(given[name], right))
    nodes = list(match.nodes)
    for node in nodes:
        require(node.kwargs.get("alpha", 1) == 1)
        outside = [user for user in node.users if user not in nodes]
        require(not outside or node is match.output_node())


def is_safe(match):
    try:
        look(match)
    except (NotSafeError, AttributeError):
        return False
    return True


def fuse_bias_gelu(graph_module):
    fuse_loosely(graph_module, is_safe)
    return graph_module
