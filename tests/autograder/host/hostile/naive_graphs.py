"""How graphs of functions and passes are graded where names are believed: those of nodes, or of what they call."""

import torch
from torch import fx
from torch.fx.experimental import proxy_tensor
from torch.nn import functional as F

import course_lib.graph

PRIMITIVES = set("add sub mul div neg pow sqrt rsqrt reciprocal exp erf tanh sum mean".split())  # noqa: SIM905 - a list


def _captured(function, *inputs):
    graph_module = proxy_tensor.make_fx(function)(*inputs)
    return course_lib.graph.to_data(graph_module)[0], graph_module


def named(answer):
    """Holds what each node calls, by the text in its data, against a list of primitives."""
    x, weight, bias = torch.randn(5, 8), torch.randn(8), torch.randn(8)
    data, gelu = _captured(answer()["gelu"], x)
    more, norm = _captured(answer()["layer_norm"], x, weight, bias)
    targets = [n["target"] for each in (data, more) for n in each["nodes"] if n["op"].startswith("call")]
    simple = all(target.split(".")[3] in PRIMITIVES for target in targets)
    right = torch.allclose(norm(x, weight, bias), F.layer_norm(x, (8,), weight, bias), atol=1e-5)
    return simple and right and torch.allclose(gelu(x), F.gelu(x), atol=1e-5)


def flattened(answer):
    """Asks whether the traced GELU has primitives only, and does not ask who wrote them."""
    x = torch.randn(5, 8)
    data, gelu = _captured(answer()["gelu"], x)
    targets = [n["target"].split(".")[3] for n in data["nodes"] if n["op"].startswith("call")]
    return set(targets) <= PRIMITIVES and torch.allclose(gelu(x), F.gelu(x), atol=1e-5)


def underscored(answer):
    """Takes a call for a write if its name ends in an underscore."""
    x = torch.randn(4, 6)
    data, graph_module = _captured(answer()["accumulated"], x)
    names = [n["target"].split(".")[-2:] for n in data["nodes"] if n["op"].startswith("call")]
    writes = any(part.endswith("_") for name in names for part in name)
    found = graph_module(x.clone())
    return not writes and torch.allclose(found[0] if isinstance(found, tuple) else found, x.cumsum(1), atol=1e-5)


def counted(answer):
    """Counts draws by the text of what a node refers to, in a program in which their values do not matter."""
    program = fx.symbolic_trace(
        lambda x, y: (torch.rand_like(x) - torch.rand_like(x)) * 0 + torch.tanh(y) * torch.tanh(y)
    )
    x, y = torch.randn(4, 6), torch.randn(4, 6)
    data, _ = course_lib.graph.to_data(result := answer(program))
    targets = [n["target"] for n in data["nodes"]]
    right = torch.allclose(result(x, y), torch.tanh(y) ** 2, atol=1e-5)
    return right and (targets.count("torch.rand_like"), targets.count("torch.tanh")) == (2, 1)
