"""What a node does besides its result is observed, in every spelling, and where it cannot be, nothing is moved."""

import functools
import operator
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import fx, nn

from course_lib.fusion import fuse
from course_lib.fusion.effects import effects_of, is_opaque, is_random, mutates
from course_lib.fusion.supposition import is_declared_to_write
from course_lib.graph import propagate_shapes


class Foreign(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x


def _node(op: str, target: Any, *args: Any, **kwargs: Any) -> fx.Node:
    graph = fx.Graph()
    root = nn.Module()
    root.relu, root.relu_inplace, root.foreign = nn.ReLU(), nn.ReLU(inplace=True), Foreign()
    x = graph.placeholder("x")
    node = graph.create_node(op, target, (x, *args), {k: x if v == "x" else v for k, v in kwargs.items()})
    graph.output(node)
    return next(iter(fx.GraphModule(root, graph).graph.find_nodes(op=op, target=target)))


def _shown(call: tuple[Any, ...]) -> str:
    op, target, *rest = call
    return f"{op}-{getattr(target, '__name__', target)}-{rest}"


CHANGING: list[tuple[Any, ...]] = [
    ("call_method", "add_", 1),
    ("call_method", "zero_"),
    ("call_function", operator.iadd, 1),
    ("call_function", operator.setitem, 0, 1),
    ("call_function", torch.relu_),
    ("call_function", F.silu, True),
    ("call_function", F.dropout, 0.5, True, True),
    ("call_function", torch.ops.aten.add_.Tensor, 1),
    ("call_module", "relu_inplace"),
    ("call_module", "foreign"),
]
HARMLESS: list[tuple[Any, ...]] = [
    ("call_method", "add", 1),
    ("call_method", "__len__"),
    ("call_function", operator.add, 1),
    ("call_function", operator.index),
    ("call_function", operator.invert),
    ("call_function", F.silu),
    ("call_function", F.silu, False),
    ("call_function", F.gelu),
    ("call_function", torch.ops.aten.add.Tensor, 1),
    ("call_function", torch.ops.course_lib.bias_gelu, 1),
    ("call_module", "relu"),
]


@pytest.mark.parametrize("call", CHANGING, ids=_shown)
def test_what_changes_a_tensor_is_recognised(call: tuple[Any, ...]) -> None:
    assert mutates(_node(*call))
    assert is_declared_to_write(_node(*call)) or call[1] == "foreign"


@pytest.mark.parametrize("call", HARMLESS, ids=_shown)
def test_what_changes_nothing_is_not_suspected(call: tuple[Any, ...]) -> None:
    assert not mutates(_node(*call))
    assert not is_declared_to_write(_node(*call))


def test_keywords_count_too() -> None:
    assert mutates(_node("call_function", F.relu, inplace=True))
    assert mutates(_node("call_function", torch.exp, out="x"))
    assert not mutates(_node("call_function", F.relu, inplace=False))


@torch.library.custom_op("effects_test::store", mutates_args={"cache"})
def _store(key: torch.Tensor, cache: torch.Tensor) -> None:
    cache.copy_(key)


def _helper(x: torch.Tensor) -> torch.Tensor:
    return x


def _observed(program: Any, *inputs: Any) -> fx.Node:
    graph = fx.Graph()
    arguments = tuple(graph.placeholder(f"a{number}") for number in range(len(inputs)))
    if isinstance(program, nn.Module):
        held: nn.Module = nn.Sequential(program)
        graph.output(graph.call_module("0", arguments))
    else:
        held = nn.Module()
        graph.output(graph.call_function(program, arguments))
    gm = propagate_shapes(fx.GraphModule(held, graph), inputs)
    return next(one for one in gm.graph.nodes if one.op.startswith("call"))


X, ROW = torch.ones(4, 4), torch.ones(4)
WRITING: dict[str, tuple[Any, ...]] = {
    "the second argument of an operator": (torch.ops.effects_test.store, X, X.clone()),
    "statistics of a BatchNorm": (nn.BatchNorm1d(4).eval(), X),
    "rows of an embedding": (nn.Embedding(4, 4, max_norm=0.5), torch.arange(2)),
    "the vectors of spectral_norm": (nn.utils.parametrizations.spectral_norm(nn.Linear(4, 4)).eval(), X),
    "the input of ELU": (nn.ELU(inplace=True), X),
    "the input of Hardtanh": (nn.Hardtanh(inplace=True), X),
}
DRAWING: dict[str, tuple[Any, ...]] = {
    "binomial": (torch.binomial, X, X),
    "gamma": (torch._standard_gamma, X),
    "dirichlet": (torch._sample_dirichlet, X),
    "dropout in evaluation, which may train": (nn.Dropout().eval(), X),
    "layers of an LSTM": (nn.LSTM(4, 4, 2, dropout=0.5), X),
    "attention": (nn.MultiheadAttention(4, 2, dropout=0.5), X, X, X),
    "gumbel": (F.gumbel_softmax, X),
}
NEITHER: dict[str, tuple[Any, ...]] = {
    "linear": (nn.Linear(4, 4), X),
    "dropout of probability 0": (nn.Dropout(0.0), X),
    "a BatchNorm without statistics": (nn.BatchNorm1d(4, track_running_stats=False), X),
    "attention without dropout": (F.scaled_dot_product_attention, X, X, X),
    "our operator": (torch.ops.course_lib.bias_gelu, X, ROW),
}


@pytest.mark.parametrize("case", WRITING)
def test_a_write_is_observed_wherever_it_goes(case: str) -> None:
    program, *inputs = WRITING[case]
    assert effects_of(_observed(program, *inputs)).writes


@pytest.mark.parametrize("case", DRAWING)
def test_a_draw_is_observed(case: str) -> None:
    program, *inputs = DRAWING[case]
    assert is_random(_observed(program, *inputs))


@pytest.mark.parametrize("case", NEITHER)
def test_what_only_computes_has_no_effect(case: str) -> None:
    program, *inputs = NEITHER[case]
    node = _observed(program, *inputs)
    assert (mutates(node), is_random(node), is_opaque(node)) == (False, False, False)


def test_code_from_elsewhere_may_do_anything() -> None:
    hooked = nn.Linear(4, 4)
    hooked.register_forward_hook(lambda *_: None)
    for program in (
        _helper,
        Foreign(),
        hooked,
        torch.jit.script(nn.Linear(4, 4)),
        functools.wraps(torch.relu)(_helper),
    ):
        node = _observed(program, X)
        assert (mutates(node), is_random(node), is_opaque(node)) == (True, True, True)


def test_views_of_one_storage_are_one_memory_also_in_the_model() -> None:
    class Views(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("all", torch.zeros(8))
            self.register_buffer("part", self.get_buffer("all")[:4])

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            total = x + self.part
            torch.add(x[0, 0], 1, out=self.all)
            return F.gelu(total)

    result = fuse(Views(), (X,))
    (refusal,) = result.rejected
    assert refusal.rule == "mutation"
    assert "add_1 (test_effects.py:" in refusal.reason
    assert "changes part in place after add has read it" in refusal.reason


def test_to_look_changes_no_random_state_no_model_and_no_input() -> None:
    model = nn.Sequential(nn.BatchNorm1d(4), nn.utils.parametrizations.spectral_norm(nn.Linear(4, 4)), nn.ReLU(True))
    x, before = X.clone(), {name: tensor.clone() for name, tensor in model.state_dict().items()}
    random, dtype = torch.get_rng_state(), torch.get_default_dtype()
    propagate_shapes(fx.symbolic_trace(model), (x,))
    assert torch.equal(torch.get_rng_state(), random)
    assert torch.get_default_dtype() is dtype
    assert all(torch.equal(tensor, before[name]) for name, tensor in model.state_dict().items())
    assert torch.equal(x, X)


def test_nothing_is_moved_past_a_module_with_hooks() -> None:
    class Hooked(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.part = nn.Linear(4, 4)
            self.part.register_forward_hook(lambda *_: None)

        def forward(self, x: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
            total = x + b
            return self.part(x) + F.gelu(total)

    (refusal,) = fuse(Hooked(), (X, ROW)).rejected
    assert refusal.rule == "unobserved"
    assert "Linear has hooks" in refusal.reason
