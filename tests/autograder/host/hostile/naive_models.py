"""Naive graders of models and passes, which look at one set of weights, or write their own before they look.

They belong to `naive_grader.py`, which finds them by name.
"""

import inspect
import math

import torch
from torch import fx, nn
from torch.nn import functional as F

import course_lib.kernels  # noqa: F401 - registers the operators
from autograder.host.kinds.schedule_models import Encoder
from course_lib.schedule import create_schedule

# What an answer defines, by the folder of the attacks on it.
ENTRY = {
    "01_bert_layer": "BertEncoder",
    "01_multi_head_attention": "MultiHeadAttention",
    "03_make_it_scriptable": "make_recall",
    "05_fold_affine": "fold_affine",
    "06_find_bias_gelu": "find_bias_gelu",
    "06_fuse_block_ends": "fuse_block_ends",
    "06_replace_attention": "replace_attention",
    "06_schedule_encoder": "schedule_encoder",
    "06_separate_biases": "separate_biases",
    "06_trace_by_need": "trace_feed_forwards",
}
TOLERANCE = 1e-4


class Gated(nn.Module):
    """Two linear layers with a bias of its own and SiLU between them."""

    def __init__(self):
        super().__init__()
        self.up, self.up_bias = nn.Linear(8, 16, bias=False), nn.Parameter(torch.randn(16))
        self.activation, self.down = nn.SiLU(), nn.Linear(16, 8)

    def forward(self, x):
        return self.down(self.activation(self.up(x) + self.up_bias))


def weights(answer):
    """Checks the result on the same inputs, weights and batch size that the pass could see."""
    torch.manual_seed(0)
    layer, x = Gated().eval(), torch.randn(4, 8)
    program = fx.symbolic_trace(layer)
    fx.passes.shape_prop.ShapeProp(program).propagate(x)
    result = answer(program)
    return "bias_silu" in result.code and torch.allclose(result(x), layer(x), atol=1e-5)


def restored_graph(answer):
    """Writes its own weights into the graph, since a copy in the graph would then be wrong."""
    torch.manual_seed(0)
    layer, x = Gated().eval(), torch.randn(4, 8)
    program = fx.symbolic_trace(layer)
    state = {name: torch.randn_like(tensor) for name, tensor in layer.state_dict().items()}
    result = answer(program)
    for module in (result, layer):
        module.load_state_dict(state)
    return "bias_silu" in result.code and torch.allclose(result(x), layer(x), atol=TOLERANCE)


def folded_once(answer):
    """Compares one program with one set of weights."""
    torch.manual_seed(0)
    layer, x = nn.Sequential(nn.LayerNorm(6), nn.Linear(6, 4)).eval(), torch.randn(5, 6)
    nn.init.normal_(layer[0].weight)
    program = fx.symbolic_trace(layer)
    fx.passes.shape_prop.ShapeProp(program).propagate(x)
    expected = layer(x)
    return torch.allclose(answer(program)(x), expected, atol=TOLERANCE)


def one_module(answer):
    """Builds one module of each size, and gives it weights once."""
    torch.manual_seed(0)
    module, tokens = answer(8, 2), torch.randn(2, 5, 8)
    module.load_state_dict({name: torch.randn_like(tensor) for name, tensor in module.state_dict().items()})
    state = module.state_dict()
    if "dense.weight" in state:
        return torch.allclose(module(tokens), F.linear(tokens, *state.values()), atol=TOLERANCE)
    part = {n: F.linear(tokens, state[f"{n}.weight"], state[f"{n}.bias"]) for n in ("query", "key", "value")}
    query, key, value = (part[n].view(2, 5, 2, 4).transpose(1, 2) for n in ("query", "key", "value"))
    context = torch.softmax(query @ key.mT / math.sqrt(4), -1) @ value
    expected = F.linear(context.transpose(1, 2).flatten(2), state["output.weight"], state["output.bias"])
    return torch.allclose(module(tokens), expected, atol=TOLERANCE)


def _schedules(answer, *, dropout=0.0, restored=False):
    torch.manual_seed(0)
    model = Encoder(layers=1, dropout=dropout).eval()
    state = {name: torch.randn_like(tensor) for name, tensor in model.state_dict().items()}
    inputs = torch.randn(2, 5, 8), torch.randn(2, 1, 1, 5)
    model.load_state_dict(state)
    expected = model(*inputs)
    answer(schedule := create_schedule(model))
    result = schedule.build()
    if restored:
        result.load_state_dict(state)
    return torch.allclose(result(*inputs), expected, atol=TOLERANCE)


def restored_model(answer):
    """Writes its own weights into the scheduled model, by name."""
    return _schedules(answer, restored=True)


def evaluated(answer):
    """Compares in evaluation, since numbers in training are random."""
    return _schedules(answer, dropout=0.25)


def timed_model(answer):
    """Looks at the model that it times, whose size everybody can see, and believes the calls that are left in it."""
    schedule, inputs, expected = _known(width=64, heads=4, eps=1e-5)
    answer(schedule, dict.fromkeys(("attention", "gelu", "block_ends"), True))
    result = fx.symbolic_trace(schedule.build())
    fused = [n for n in result.graph.nodes if "bias_dropout_residual_layer_norm" in str(n.target)]
    return len(fused) == 2 and torch.allclose(result(*inputs), expected, atol=TOLERANCE)


def _known(**arguments):
    width = arguments.get("width", 8)
    model, inputs = Encoder(layers=1, **arguments).eval(), (torch.randn(2, 5, width), torch.randn(2, 1, 1, 5))
    return create_schedule(model), inputs, model(*inputs)


def well_known(answer):
    """Asks about a model whose names everybody knows, and counts the linear layers that are left."""
    schedule, inputs, expected = _known(activation="own gelu")
    answer(schedule, *["dense"][: len(inspect.signature(answer).parameters) - 1])
    left = sum(type(part) is nn.Linear for part in schedule.mod.modules())
    return left <= 4 and torch.allclose(schedule.build()(*inputs), expected, atol=TOLERANCE)


def found_once(answer):
    """Asks for GELU in a class that everybody knows."""
    schedule, _, _ = _known(activation="own gelu")
    for path, part in list(schedule.mod.named_modules()):
        if isinstance(part, nn.Linear):
            schedule[path].decompose()
    return len(answer(schedule.trace(leaf_modules=["FastGelu"]))) == 1
