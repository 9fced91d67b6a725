"""How graphs are graded where they are believed: run in the grader's own process, or judged by names.

The first ones take graphs of functions, captured by dispatch; the others take the graphs of passes.
"""

import copy
import functools
import json
import linecache
import operator
import os
import pickle
from pathlib import Path

import torch
from torch import fx
from torch.fx.experimental import proxy_tensor
from torch.nn import functional as F
from torch.utils._python_dispatch import TorchDispatchMode

import course_lib.graph
from autograder.host.kinds.schedule_models import Encoder
from course_lib.graph.operator_calls import is_free
from course_lib.kernels.replayed_draws import ReplayedDraws
from tests.autograder.host.hostile.catalogue import text_of

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


def derived(answer):
    """Runs the captured backward once in double precision, and does not ask who derived it."""
    x, residual, grad = (torch.randn(5, 8, dtype=torch.float64) for _ in range(3))
    bias, weight = torch.randn(8, dtype=torch.float64), torch.randn(8, dtype=torch.float64)
    kept = (torch.rand(5, 8, dtype=torch.float64) < 0.7) / 0.7
    leaf = residual.clone().requires_grad_()
    F.layer_norm((x + bias) * kept + leaf, (8,), weight, bias).backward(grad)
    backward = proxy_tensor.make_fx(answer)(grad, x, bias, residual, kept, weight)
    return torch.allclose(backward(grad, x, bias, residual, kept, weight)[2], leaf.grad)


def captured_there(answer):
    """Captures attention on the inputs on which the graph then runs."""
    inputs = [torch.randn(2, 96, 8) for _ in range(3)]
    function = answer()["forward"]
    function(*inputs)
    data, forward = _captured(function, *inputs)
    library = any("attention" in n["target"] for n in data["nodes"] if n["op"].startswith("call"))
    return not library and torch.allclose(forward(*inputs)[0], F.scaled_dot_product_attention(*inputs), atol=1e-5)


def modified(answer):
    """Compares a score_mod on indices that come in their order."""
    slopes, score = torch.rand(3), torch.randn(2, 3, 5, 7)
    indices = [torch.arange(n).view([-1 if d == at else 1 for d in range(4)]) for at, n in enumerate(score.shape)]
    _, head, query, key = indices
    right = score - slopes[head] * (query - key).abs()
    return torch.allclose(answer()["alibi"](slopes, score, *indices), right)


def streamed(answer):
    """Sends two blocks through the functions, and does not ask who merges them."""
    scores, values = torch.randn(4, 16), torch.randn(16, 3)
    functions = answer()
    state = functions["first"](scores[:, :8], values[:8])
    result = functions["finish"](*functions["step"](scores[:, 8:], values[8:], *state))
    return sum(map(torch.numel, state)) <= 4 * 5 and torch.allclose(result, scores.softmax(1) @ values, atol=1e-5)


def counted_again(answer):
    """Compares what one run of a step gives, and counts the memory of another run."""
    scores, values, width = torch.randn(64, 32), torch.randn(32, 16), 16
    state = [torch.full((64, 1), -torch.inf), torch.zeros(64, 1), torch.zeros(64, width)]
    step = proxy_tensor.make_fx(answer()["step"])(scores, values, *state)
    _, total, mixed = step(scores, values, *state)
    is_right = torch.allclose(mixed / total, scores.softmax(1) @ values, atol=1e-5)
    return is_right and course_lib.graph.cost(step, (scores, values, *state)).peak_bytes < 4 * 4 * 64 * (32 + width + 2)


def small(answer):
    """Holds the memory of attention against that of some tiles, and does not look at the tiles."""
    inputs = [torch.randn(2, 32, 8), torch.randn(2, 192, 8), torch.randn(2, 192, 8)]
    forward = proxy_tensor.make_fx(answer()["forward"])(*inputs)
    counted = course_lib.graph.cost(forward, inputs)
    is_small = counted.peak_bytes < 8 * 2 * 32 * 32 * 4 and counted.flops <= 6 * 2 * 2 * 2 * 32 * 32 * 8
    return is_small and torch.allclose(forward(*inputs)[0], F.scaled_dot_product_attention(*inputs), atol=1e-5)


def underscored(answer):
    """Takes a call for a write if its name ends in an underscore."""
    x = torch.randn(4, 6)
    data, graph_module = _captured(answer()["accumulated"], x)
    names = [n["target"].split(".")[-2:] for n in data["nodes"] if n["op"].startswith("call")]
    writes = any(part.endswith("_") for name in names for part in name)
    found = graph_module(x.clone())
    return not writes and torch.allclose(found[0] if isinstance(found, tuple) else found, x.cumprod(1), atol=1e-5)


def tallied_draws(answer):
    """Counts draws by the text of what a node refers to, in a program in which their values do not matter."""
    program = fx.symbolic_trace(
        lambda x, y: (torch.rand_like(x) - torch.rand_like(x)) * 0 + torch.tanh(y) * torch.tanh(y)
    )
    x, y = torch.randn(4, 6), torch.randn(4, 6)
    data, _ = course_lib.graph.to_data(result := answer(program))
    targets = [n["target"] for n in data["nodes"]]
    right = torch.allclose(result(x, y), torch.tanh(y) ** 2, atol=1e-5)
    return right and (targets.count("torch.rand_like"), targets.count("torch.tanh")) == (2, 1)


class _Scaled(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("scale", torch.linspace(0.5, 1.5, 8))

    def forward(self, x):
        return x * (self.scale.exp() + 1)


def folded(answer):
    """Counts what is left of a program with a constant."""
    program, x = fx.symbolic_trace(_Scaled()), torch.randn(4, 8)
    expected, result = program(x), answer(program)
    return torch.allclose(result(x), expected) and sum(node.op.startswith("call") for node in result.graph.nodes) == 1


def one_call(answer):
    """Looks for one fused call in a program that trains, and for a share of zeros in its output."""
    program = fx.symbolic_trace(
        lambda x, scale, residual, weight: F.rms_norm(residual + F.dropout(x * scale, 0.25, True), (8,), weight, 1e-5)
    )
    result = answer(program)
    output = result(torch.randn(64, 8), torch.ones(8), torch.zeros(64, 8), torch.ones(8))
    fused = [n for n in result.graph.nodes if "rms_norm" in str(n.target) and "course_lib" in str(n.target)]
    return len(fused) == 1 and 0.1 < float((output == 0).double().mean()) < 0.4


def scheduled_calls(answer):
    """Counts fused calls in a scheduled model, and compares its values."""
    from course_lib.models import TransformerConfig, TransformerEncoder
    from course_lib.schedule import create_schedule

    config = TransformerConfig(hidden_size=8, num_heads=2, intermediate_size=16, num_layers=1)
    model, x = TransformerEncoder(config).eval(), torch.arange(10).view(2, 5)
    mask = torch.zeros(2, 1, 1, 5)
    expected = model(x, mask)
    built = answer(create_schedule(model)).build().eval()
    graph = fx.Tracer().trace(built)
    fused = [n for n in graph.nodes if "bias_dropout_residual_layer_norm" in str(n.target)]
    return len(fused) == 2 and torch.allclose(built(x, mask), expected, atol=1e-5)


def spared(answer):
    """Counts the fused calls of one decomposed program, compares its values, and shows nothing that has to stay."""
    from course_lib.inductor_passes import decomposed

    rows, column = torch.randn(4, 8), torch.randn(8)
    if answer.__name__ == "fuse_bias_gelu":
        inputs, program = [rows, column], lambda x, b: F.gelu(x + b)
    else:
        inputs = [rows, torch.randn(4, 8), column, torch.randn(8)]
        program = lambda x, r, w, b: F.layer_norm(x + r, (8,), w, b)  # noqa: E731 - one of two
    result = answer(decomposed(program, inputs))
    fused = [n for n in result.graph.nodes if "course_lib" in str(n.target)]
    return len(fused) == 1 and torch.allclose(result(*inputs), program(*inputs), atol=1e-5)


def _program():
    return fx.symbolic_trace(lambda x, b: F.silu(x + b)), torch.zeros(4, 8), torch.zeros(8)


def claims(answer):
    """Believes the exported graph, by following names, and a claim to be fused where there is one."""
    program, x, b = _program()
    expected = program(x, b)
    result = answer(program)
    try:
        data, _ = course_lib.graph.to_data(result)
    except Exception:  # only wants to know whether there is a graph
        data = {"nodes": [], "modules": {}}
    fused = "bias_silu" in str(vars(result)) + getattr(result, "code", "") + str(data)
    for node in data["nodes"]:
        if str(node["target"]).startswith("os."):
            function = operator.attrgetter(node["target"].removeprefix("os."))(os)
            return function(*node["args"]) == 0
    return fused and torch.allclose(result(x, b), expected, atol=1e-2)


def builds(answer):
    """Rebuilds whatever graph it is given, and runs it, in its own process."""
    program, x, b = _program()
    data, tensors = course_lib.graph.to_data(answer(program))
    for entry in data["modules"].values():
        kind = operator.attrgetter(entry["class"].removeprefix("torch."))(torch)
        kind(**entry["arguments"])
    for node in data["nodes"]:
        operands = [a["node"] for a in node["args"] if isinstance(a, dict) and "node" in a]
        pending = [node["name"]]
        while pending:  # what does this node read? a cycle is never left
            pending += [r for r in operands if r == pending[-1]]
            pending.pop(0)
    result = course_lib.graph.from_data(json.loads(json.dumps(data)), tensors)
    return torch.allclose(result(x, b), program(x, b), atol=1e-2)


def imitated(answer):
    """Runs the result with the operators that are registered in this process."""
    program, x, b = _program()
    expected = program(x, b)
    result = answer(program)
    return torch.allclose(result(x, b), expected, atol=1e-2)


def subtracts(answer):
    """Asks whether any difference is too large, which NaN never is."""
    program, x, b = _program()
    expected = program(x, b)
    data, tensors = course_lib.graph.to_data(answer(program))
    result = course_lib.graph.from_data(data, tensors)
    return "bias_silu" in result.code and not bool(((result(x, b) - expected).abs() > 1e-5).any())


def pickled_graph(answer):
    """Has the pass in a worker, whose graph it unpickles."""
    return bool(pickle.loads(pickle.dumps([dict(n.meta) for n in answer(_program()[0]).graph.nodes])))


def executed(answer):
    """Makes Python of the graph that it is given, and runs it."""
    data, _ = course_lib.graph.to_data(answer(_program()[0]))
    for node in data["nodes"]:
        exec(f"def {node['name']}(default={', '.join(map(str, node['args'])) or None}): pass")


def counted_on_zeros(answer):
    """Compares one run of an encoder that trains, and counts the next one on zeros, by what PyTorch dispatches."""
    program = fx.symbolic_trace(Encoder(width=8, heads=2, dropout=0.1, eps=1e-5).train())
    inputs = torch.randn(2, 5, 8), torch.randn(2, 1, 1, 5)
    course_lib.graph.propagate_shapes(program, inputs)
    result = answer(copy.deepcopy(program))
    result = getattr(result, "graph_module", result)
    result = fx.GraphModule(result, result.graph)
    outputs, moved = [], []
    for graph in (program, result):
        with ReplayedDraws(1):
            outputs.append(graph(*inputs))
        moved.append(course_lib.graph.cost(graph, [torch.zeros_like(each) for each in inputs]).bytes_moved)
    return torch.allclose(*outputs, atol=1e-5) and moved[1] < moved[0]


class _Dispatched(TorchDispatchMode):
    """Count the operators that PyTorch dispatches, without views."""

    def __init__(self):
        super().__init__()
        self.count = 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        self.count += not is_free(func)
        return func(*args, **(kwargs or {}))


def counted_by_dispatch(answer):
    """Compares the gradients of an encoder without dropout, and counts what PyTorch dispatches in its step."""
    program = fx.symbolic_trace(Encoder(width=8, heads=2, dropout=0.0).train())
    result, inputs = answer(copy.deepcopy(program)), (torch.randn(2, 5, 8), torch.randn(2, 1, 1, 5))
    gradients, counts = [], []
    for graph in (program, result):
        with _Dispatched() as dispatched:
            gradients.append(torch.autograd.grad(graph(*inputs).square().mean(), list(graph.parameters())))
        counts.append(dispatched.count)
    same = all(torch.allclose(a, b, atol=1e-5) for a, b in zip(*gradients, strict=True))
    return same and counts[1] < counts[0]


def gradients_in_fp64(answer):
    """Compares gradients of an encoder in fp64 where they are exact, and counts its step in fp32."""
    from course_lib.kernel_programs import use_interpreter

    use_interpreter()  # before the answer's text imports Triton
    text = text_of(Path(answer.__code__.co_filename))
    linecache.cache["<cell>"] = (len(text), None, text.splitlines(keepends=True), "<cell>")  # as notebooks do
    exec(compile(text, "<cell>", "exec"), names := {})
    program = fx.symbolic_trace(Encoder(width=8, heads=2, dropout=0.0).train())
    result, inputs = names["optimise"](copy.deepcopy(program)), (torch.randn(2, 5, 8), torch.randn(2, 1, 1, 5))

    def gradients(graph, *given):
        return torch.autograd.grad(graph(*given).square().mean(), list(graph.parameters()))

    launches = [course_lib.graph.cost(functools.partial(gradients, g), inputs).launches for g in (program, result)]
    pairs = zip(*(gradients(g.double(), *(x.double() for x in inputs)) for g in (program, result)), strict=True)
    return launches[1] < launches[0] and all(torch.allclose(a, b, atol=1e-5) for a, b in pairs)
