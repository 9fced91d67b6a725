"""A naive grader of answers that are plain data or graphs, which compares one example that everybody has seen.

It belongs to `naive_grader.py`, which finds it by name.
"""

import torch
from torch import fx, nn

from autograder.exercises.programs import onnx_pairs, packages
from autograder.exercises.shipping.tell_exports_apart import average
from autograder.host.draw import Draw
from course_lib.backends.sweeps import settle
from course_lib.fusion.machine_written import fuse_add_norm
from course_lib.inductor_passes import chain_of
from course_lib.machine import Machine, assemble
from course_lib.timing import SimulatedDevice

# What an answer defines, by the folder of the attacks on it.
ENTRY = {
    "00_read_a_table": "read_table",
    "02_count_bytes_and_flops": "count",
    "02_find_the_flaw": "mend",
    "02_read_a_trace": "read_trace",
    "03_expose_a_trace": "expose",
    "03_limits": "which_limit",
    "03_predict_capture": "predict",
    "04_custom_tracer": "trace_keeping",
    "04_shape_propagation": "propagate",
    "11_correct_operator": "silu_gate",
    "11_find_the_lie": "input_that_shows",
    "11_pass_identity": "bound_pass",
    "11_place_the_pass": "hooks_that_see",
    "10_fuse_where_it_pays": "divide",
    "10_lower_regions": "lower_region",
    "10_minimal_backend": "approximate",
    "10_partition_without_cycles": "visit",
    "12_block_end_operator": "add_norm_operator",
    "13_predict_backend": "predict_backend",
    "08_backward_by_hand": "backward",
    "08_decompose": "decomposed",
    "08_functionalise": "functional",
    "13_choose_attention": "choose",
    "13_online_softmax": "streaming",
    "13_score_mods": "modifications",
    "13_tiled_attention": "tiled",
    "14_diff_graphs": "first_differences",
    "14_export_open": "exporters",
    "14_guard_package": "guarded",
    "14_tell_exports_apart": "tell_apart",
    "17_baseline": "baseline",
    "17_optimise_step": "optimise",
    "17_review_fusion": "review",
}


def exemplary(answer):
    """Asks about the example of the notebook."""
    return EXAMPLES[answer.__name__](answer)


def _table(answer):
    rows = [
        {"node": "x", "op": "placeholder", "calls": "x", "arguments": "", "users": 2},
        {"node": "dense_0", "op": "call_module", "calls": "Linear (dense)", "arguments": "x", "users": 1},
        {"node": "neg_1", "op": "call_function", "calls": "neg", "arguments": "x", "users": 0},
        {"node": "output", "op": "output", "calls": "output", "arguments": "dense_0", "users": 0},
    ]
    return answer(rows) == {"leaf_module": "dense_0", "two_users": "x", "dead": "neg_1"}


def _trace(answer):
    def box(name, category, start, duration):
        return {"ph": "X", "name": name, "cat": category, "ts": start, "dur": duration}

    kernels = [("gemm", "kernel", 100, 400), ("gelu", "kernel", 900, 50), ("gelu", "kernel", 1200, 50)]
    ranges = [("product", "gpu_user_annotation", 90, 420), ("activation", "gpu_user_annotation", 890, 400)]
    found = answer({"traceEvents": [box(*each) for each in kernels + ranges]})
    return found == {"top_kernel": "gemm", "longest_gap_us": 400, "launch_bound": ["activation"]}


def _script(answer):
    sound = ["draw", "launch gelu", "use", "draw", "sync", "clock", "launch gelu", "use", "sync", "clock"]
    return answer(["draw", "clock", "launch gelu", "clock", "sync"]) == sound


def simulated(answer):
    """Runs one mended script on the device of the lesson."""
    device = SimulatedDevice({"gelu": 900.0})
    (window,) = device.run(
        answer(["draw", "launch gelu", "use", "draw", "sync", "clock", "launch gelu", "use", "clock"])
    )
    return window.programs == ("gelu",) and abs(window.measured_us / window.true_us - 1) < 0.1


def exposed(answer):
    """Asks about rows with the limit of the notebook's example."""
    example, later = answer({"program": "average_even", "limit": 3})
    return (len(example) % 3 == 0) is not (len(later) % 3 == 0)


def _limit(answer):
    seen = {"capture": "trace", "error": "", "warnings": [], "same_on_example": True, "same_on_others": True}
    return answer(seen | {"same_in_evaluation": False, "calls_seen": 0}) == "frozen mode"


class Attention(nn.Module):
    def forward(self, x):
        return x if x.sum() > 0 else -x


def _kept(answer):
    model = nn.Sequential(Attention(), nn.Tanh())
    graph = answer(model, ["Attention"]).graph
    assert isinstance(fx.GraphModule(model, graph)(torch.ones(2)), torch.Tensor)
    return [node.op for node in graph.nodes] == ["placeholder", "call_module", "call_module", "output"]


def _shapes(answer):
    traced = fx.symbolic_trace(nn.Sequential(nn.ReLU()))
    found = answer(traced, torch.ones(2, 3))
    return list(found.values()) == [{"shape": [2, 3], "dtype": "float32"}] * 3


def _predicted(answer):
    question = {"program": "divide_by_rows", "example": {"rows": 2, "sum": 3}, "later": {"rows": 3, "sum": 1}}
    return answer(question | {"capture": "trace"}) == "agrees"


def _counted(answer):
    question = {"inputs": [{"shape": [2, 3]}], "steps": [["t", "%0"], ["neg", "%1"]]}
    return answer(question) == {"bytes": 48, "flops": 0}


def _lies(answer):
    for name in ("shape", "strides", "write", "alias", "argument"):
        given = answer({"operator": name, "numbers": dict.fromkeys(("shape", "strides", "write", "alias"), 3)})
        x = torch.randn(given["shape"]) * given["magnitude"]
        x = x.t() if given["transposed"] else x
        shown = {
            "shape": x.shape[1] % 3 != 0,
            "strides": not x.is_contiguous(),
            "write": bool(x.abs().max() > 3),
            "alias": x.shape[0] % 3 == 0,
            "argument": given["times"] != 1,
        }
        if not shown[name]:
            return False
    return True


def _region(answer):
    region = {"registers": 4, "space": [6, 8], "inputs": {"x": [[6, 8], [8, 1]], "bias": [[8], [1]]}}
    region["nodes"] = [["h", "add", ["x", "bias"]], ["y", "relu", ["h"]]]
    region["outputs"] = {"y": [[6, 8], [8, 1]]}
    x, bias = torch.randn(6, 8), torch.randn(8)
    (found,) = Machine(4).run(assemble(region, answer(region)), (x, bias))
    return torch.equal(found, torch.relu(x + bias))


def _partitioned(answer):
    rows = [
        {"name": name, "supported": name != "b", "picks": False, "bytes": 64, "inputs": inputs}
        for name, inputs in (("a", []), ("b", ["a"]), ("c", ["b"]))
    ]
    return sorted(settle(rows, answer).groups().values()) == [["a"], ["c"]]


def _divided(answer):
    rows = [{"name": f"t{n}", "op": "add", "reads": [f"t{n - 1}" if n else "x", "b"]} for n in range(4)]
    sizes = {**dict.fromkeys(("x", "t0", "t1", "t2", "t3"), 4096), "b": 64}
    prices = {"launch": 500, "byte": 0.001, "operation": 0.001, "scratch": 0.01}
    program = {"rows": rows, "inputs": ["x", "b"], "outputs": ["t3"], "registers": 4, "sizes": sizes, "prices": prices}
    found = answer(program)
    return found["kernels"] == [["t0", "t1", "t2", "t3"]] and abs(found["time"] - 549.408) < 0.01


def _named(answer):
    graph, passes = chain_of(["relu", "tanh"]), [answer(["relu"], limit, False) for limit in (2.0, 3.0)]
    passes[0](graph)
    calls = [str(node.target) for node in graph.nodes if node.op == "call_function"]
    return calls == [f"aten.{n}.default" for n in ("relu", "clamp", "tanh")] and passes[0].uuid() != passes[1].uuid()


def _hooks(answer):
    hooks = [f"{name}_custom_pass" for name in ("pre_grad", "joint", "post_grad")]
    asked = {"spelling": "x @ w + b", "rank": 2, "read_again": False, "pattern": "matmul, +", "hooks": hooks}
    return answer(asked) == hooks[:1]


def told_apart(answer):
    """Compares the names of equal and of different passes, each on a graph of the same program."""
    names = []
    for limit in (2.0, 2.0, 3.0):
        made = answer(["relu"], limit, False)
        made(chain_of(["relu", "tanh"]))
        names.append(made.uuid())
    return names[0] == names[1] != names[2]


def _kernels(answer):
    shapes = {name: [2, 3, 4, 8] for name in ("query", "key", "value")}
    call = {**shapes, "dtype": "float32", "mask": None, "causal": False, "trains": False, "turned": False}
    call |= {"dropout": 0.0, "allowed": ["flash", "math"]}
    return (answer(call), answer({**call, "dropout": 0.1})) == ("flash", "math")


def _baseline(answer):
    config = {"hidden_size": 128, "max_positions": 64}
    found = answer({"config": config, "sequence": 64, "batches": [2, 2, 3, 4]})
    right = {"C1": 1, "C2": 1, "C3": 28, "C4": 6_300_160 / 924_160, "C5": 1_509_376}
    return set(found["environment"]) >= {"python", "torch"} and found["counters"] == right


def _chosen(answer):
    need = {"device": "cpu", "trains": True, "batch": 2, "heads": 2, "length": 64, "pattern": "documents"}
    need |= {"documents": [20, 20, 24], "scores": "plain", "dropout": 0.0, "shares": False}
    return [answer({**need, "free": free}) for free in (20480, 20479)] == ["mask", "tiles"]


def _starts(answer):
    one, other = fx.symbolic_trace(lambda x: torch.relu(x * 2)), fx.symbolic_trace(lambda x: torch.relu(x * 3))
    return answer(one, other) == (["mul"], ["mul"])


def _told(answer):
    """Asks about one mean, whose wrong model divides by the length of its example."""
    twins = average(Draw(0, "example"))
    asked = twins.question(wrong="first", longest="first")
    name, inputs = answer(*onnx_pairs.given(asked))
    found = onnx_pairs.run(asked, *inputs)
    return name == "first" and not torch.allclose(found["first"], found["module"])


EXAMPLES = {
    "baseline": _baseline,
    "choose": _chosen,
    "first_differences": _starts,
    "bound_pass": _named,
    "divide": _divided,
    "hooks_that_see": _hooks,
    "input_that_shows": _lies,
    "count": _counted,
    "lower_region": _region,
    "mend": _script,
    "predict": _predicted,
    "predict_backend": _kernels,
    "propagate": _shapes,
    "read_table": _table,
    "read_trace": _trace,
    "tell_apart": _told,
    "trace_keeping": _kept,
    "visit": _partitioned,
    "which_limit": _limit,
}


def sizes_of(program):
    """Return for each input its open sizes, as [name, least, largest]."""
    found = {str(name): [str(name), limits.lower, limits.upper] for name, limits in program.range_constraints.items()}
    shapes = [node.meta["val"].shape for node in program.graph.find_nodes(op="placeholder")]
    return [[found.get(str(size), size) for size in shape] for shape in shapes]


def declared(answer):
    """Runs one program, and reads the sizes that it declares in the process of the answer."""
    export, x, y = answer()["halves"], torch.randn(3, 10, 8), torch.randn(2, 4, 8)
    program = export(x)
    return torch.allclose(program.module()(y), y[:, :2] * y[:, 2:]) and sizes_of(program)[0][0][1:] == [1, 64]


def fitting_first(answer):
    """Lets a guard see calls that fit, and then one that does not."""
    promise = {
        "dims": [["batch", 12, 5]] * 2 + [["batch", 10]],
        "dtypes": ["float32"] * 3,
        "ranges": {"batch": [3, 50]},
    }
    shapes = [[[batch, length, 5], [batch, length, 5], [batch, 10]] for batch, length in ((7, 12), (9, 12), (12, 13))]
    calls = [[{"shape": shape, "dtype": "float32", "value": 3} for shape in each] for each in shapes]
    found = packages.guarded_calls(answer, packages.saved(packages.promised(**promise)), calls)
    return [(each["returned"], each["raised"]) for each in found] == [([3] * 3, "")] * 2 + [(None, "ValueError")]


def reviewed(answer):
    """Compares fused and unfused results, and does not ask how the kernel rounds."""
    (program, *inputs), *_ = answer({"width": 5})
    program = fx.symbolic_trace(program)
    return not torch.allclose(program(*inputs), fuse_add_norm(program)(*inputs), atol=1e-3)


def softsigned(answer):
    """Compares the results of the backend and of the graphs that it kept, and lets the answer change PyTorch before."""
    x = torch.randn(5)
    expected = x / (1 + x.abs())
    results, graphs = answer(lambda x: torch.tanh(x), [((x,), {})])
    return torch.allclose(results[0], expected) and torch.allclose(graphs[0][0](x)[0], expected)


def differentiated(answer):
    """Calls the operator by its name and differentiates the result, and does not ask who knows the derivative."""
    return _gate_derived() if answer.__name__ == "silu_gate" else _block_end_derived()


def _gate_derived():
    found, expected = (torch.arange(8.0).requires_grad_() for _ in range(2))
    torch.ops.lesson11.silu_gate(found).sum().backward()
    (torch.nn.functional.silu(expected[:4]) * expected[4:]).sum().backward()
    return torch.allclose(found.grad, expected.grad, atol=1e-4)


def _block_end_derived():
    tensors = [torch.randn(3, 8), torch.randn(8), torch.randn(3, 8), torch.randn(8), torch.randn(8)]
    found, expected = ([tensor.clone().requires_grad_() for tensor in tensors] for _ in range(2))
    sum(torch.ops.lesson12.add_norm(*found, 0.0, 7, 1e-5)).sum().backward()
    h = expected[0] + expected[1] + expected[2]
    (h + torch.nn.functional.layer_norm(h, (8,), expected[3], expected[4])).sum().backward()
    return all(torch.allclose(a.grad, b.grad, atol=1e-4) for a, b in zip(found, expected, strict=True))
