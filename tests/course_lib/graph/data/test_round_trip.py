"""A graph written as data and rebuilt does what the graph did."""

import json
import operator
from collections.abc import Callable
from typing import cast

import pytest
import torch
import torch.nn.functional as F
from torch import fx, nn

import course_lib.kernels
from course_lib.errors import GraphError
from course_lib.graph import from_data, to_data
from course_lib.graph.data.modules import MODULES
from course_lib.graph.data.targets import ATEN, COURSE_OPERATORS, FUNCTIONAL, METHODS, TORCH, functions


class Everything(nn.Module):
    """One program with most of what a graph can hold: modules, parameters, constants, slices, dtypes, specials."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(6, 8), nn.GELU("tanh"), nn.LayerNorm(8, eps=1e-6), nn.Dropout(0.25))
        self.bias = nn.Parameter(torch.randn(8))
        self.register_buffer("scale", torch.full((8,), 2.0))

    def forward(self, input: torch.Tensor, other: torch.Tensor | None = None) -> tuple[object, ...]:  # noqa: A002
        h = self.layers(input) * self.scale
        h = torch.ops.course_lib.bias_silu(h, self.bias)
        h = h[:, 1:-1:2][..., None].masked_fill(h[:, 1:-1:2][..., None] > 1e3, float("-inf"))
        h = F.pad(h, (0, 0, 1, 0), value=float("nan")).to(torch.float64)
        h = torch.cat([h, h.transpose(0, 1).reshape(h.shape)], dim=1)
        return h, {"again": [h.size(0), None]}, self.layers[1](h)


def _rebuilt(gm: fx.GraphModule) -> fx.GraphModule:
    data, tensors = to_data(gm)
    return from_data(json.loads(json.dumps(data, allow_nan=False)), tensors)


def test_a_program_of_many_parts_gives_the_same_values_and_gradients() -> None:
    gm = fx.symbolic_trace(Everything()).eval()
    again = _rebuilt(gm)
    x = torch.randn(5, 6)
    torch.testing.assert_close(again(x), gm(x), rtol=0, atol=0, equal_nan=True)
    assert not again.training
    for module in (gm, again):
        module(x)[0].nan_to_num().sum().backward()
    ours = dict(again.named_parameters())
    for name, parameter in gm.named_parameters():
        assert torch.equal(cast(torch.Tensor, ours[name].grad), cast(torch.Tensor, parameter.grad))


def test_the_same_graph_gives_equal_data_each_time_and_after_a_round_trip() -> None:
    gm = fx.symbolic_trace(Everything())
    first, _ = to_data(gm)
    assert first == to_data(gm)[0]
    assert first == to_data(_rebuilt(gm))[0]
    assert first == json.loads(json.dumps(first))


def test_training_flags_travel_module_by_module() -> None:
    gm = fx.symbolic_trace(Everything()).train()
    gm.get_submodule("layers.2").eval()
    again = _rebuilt(gm)
    assert again.training
    assert again.get_submodule("layers.3").training
    assert not again.get_submodule("layers.2").training


EXAMPLES: dict[str, tuple[nn.Module, torch.Tensor]] = {
    "AdaptiveAvgPool2d": (nn.AdaptiveAvgPool2d((2, 1)), torch.randn(2, 3, 4, 4)),
    "AvgPool2d": (nn.AvgPool2d(2, padding=1), torch.randn(2, 3, 4, 4)),
    "BatchNorm1d": (nn.BatchNorm1d(3, momentum=None), torch.randn(4, 3)),
    "BatchNorm2d": (nn.BatchNorm2d(3, affine=False), torch.randn(2, 3, 4, 4)),
    "Conv1d": (nn.Conv1d(3, 5, 3, padding="same"), torch.randn(2, 3, 9)),
    "Conv2d": (nn.Conv2d(4, 6, (3, 1), stride=2, groups=2, bias=False), torch.randn(2, 4, 9, 9)),
    "Dropout": (nn.Dropout(0.4), torch.randn(2, 3)),
    "Dropout1d": (nn.Dropout1d(0.4), torch.randn(2, 3, 4)),
    "Dropout2d": (nn.Dropout2d(0.4), torch.randn(2, 3, 4, 4)),
    "ELU": (nn.ELU(0.5), torch.randn(2, 3)),
    "Embedding": (nn.Embedding(7, 3, padding_idx=1), torch.tensor([[0, 6, 1]])),
    "Flatten": (nn.Flatten(0, 1), torch.randn(2, 3, 4)),
    "GELU": (nn.GELU("tanh"), torch.randn(2, 3)),
    "GroupNorm": (nn.GroupNorm(2, 4, affine=False), torch.randn(2, 4, 3)),
    "Hardswish": (nn.Hardswish(), torch.randn(2, 3)),
    "Identity": (nn.Identity(), torch.randn(2, 3)),
    "LayerNorm": (nn.LayerNorm((3, 4), eps=1e-3, bias=False), torch.randn(2, 3, 4)),
    "LeakyReLU": (nn.LeakyReLU(0.3), torch.randn(2, 3)),
    "Linear": (nn.Linear(3, 4, bias=False, dtype=torch.float64), torch.randn(2, 3, dtype=torch.float64)),
    "LogSoftmax": (nn.LogSoftmax(-1), torch.randn(2, 3)),
    "MaxPool2d": (nn.MaxPool2d(2, ceil_mode=True), torch.randn(2, 3, 5, 5)),
    "Mish": (nn.Mish(), torch.randn(2, 3)),
    "RMSNorm": (nn.RMSNorm(3), torch.randn(2, 3)),
    "ReLU": (nn.ReLU(), torch.randn(2, 3)),
    "SiLU": (nn.SiLU(), torch.randn(2, 3)),
    "Sigmoid": (nn.Sigmoid(), torch.randn(2, 3)),
    "Softmax": (nn.Softmax(dim=0), torch.randn(2, 3)),
    "Softplus": (nn.Softplus(2.0), torch.randn(2, 3)),
    "Tanh": (nn.Tanh(), torch.randn(2, 3)),
}


@pytest.mark.parametrize("name", sorted(MODULES))
@pytest.mark.parametrize("training", [True, False])
def test_each_allowed_module_comes_back_as_it_was(name: str, training: bool) -> None:
    module, x = EXAMPLES[name]
    gm = fx.symbolic_trace(nn.Sequential(module)).train(training)
    data, tensors = to_data(gm)
    again = from_data(json.loads(json.dumps(data)), {path: tensor.clone() for path, tensor in tensors.items()})
    outputs = []
    for each in (gm, again):
        torch.manual_seed(0)
        outputs.append(each(x))
    assert torch.equal(*outputs)
    assert repr(again.get_submodule("0")) == repr(module)
    assert again.state_dict().keys() == gm.state_dict().keys()


@pytest.mark.parametrize("name", ["BatchNorm1d", "GroupNorm", "LayerNorm", "Linear", "RMSNorm"])
def test_a_layer_whose_weight_or_bias_was_taken_away_comes_back_without_it(name: str) -> None:
    x = torch.randn(2, 4)
    arguments = {"GroupNorm": (2, 4), "Linear": (4, 3)}.get(name, (4,))
    module: nn.Module = getattr(nn, name)(*arguments).eval()
    if name != "Linear":
        module.weight = None
    module.bias = None
    gm = fx.symbolic_trace(nn.Sequential(module))
    again = _rebuilt(gm)
    assert torch.equal(again(x), gm(x))
    assert again.state_dict().keys() == gm.state_dict().keys()


OPERANDS = ("x", "residual", "scale", "bias")
COURSE_CALLS: dict[str, tuple[tuple[object, ...], dict[str, object]]] = {
    "bias_dropout_residual_layer_norm": (("x", "bias", "residual", "scale", "bias", 0.3), {"eps": 1e-6}),
    "bias_gelu": (("x", "bias"), {"approximate": "tanh"}),
    "bias_silu": (("x", "bias"), {}),
    "residual_layer_norm": (("x", "residual", "scale"), {"bias": "bias", "eps": 1e-3}),
    "scale_dropout_residual_rms_norm": (("x", "scale", "residual", "scale", 0.3, False), {}),
}


@pytest.mark.parametrize("name", sorted(COURSE_OPERATORS))
@pytest.mark.parametrize("overload", ["", ".default"])
def test_each_operator_of_the_course_comes_back_as_it_was(name: str, overload: str) -> None:
    graph = fx.Graph()
    nodes = {operand: graph.placeholder(operand) for operand in OPERANDS}
    args, kwargs = COURSE_CALLS[name]
    graph.output(
        graph.call_function(
            functions()[f"torch.ops.course_lib.{name}{overload}"],  # type: ignore[arg-type]  # a table of functions
            tuple(nodes.get(str(value), value) for value in args),
            {key: nodes.get(str(value), value) for key, value in kwargs.items()},
        )
    )
    gm = fx.GraphModule(nn.Module(), graph)
    again = _rebuilt(gm)
    assert to_data(again)[0] == to_data(gm)[0]
    values = torch.randn(5, 4), torch.randn(5, 4), torch.randn(4), torch.randn(4)
    results = []
    for each in (gm, again):
        torch.manual_seed(0)
        results.append(each(*values))
    assert torch.equal(*results)


def test_every_operator_of_the_course_may_stand_in_a_graph() -> None:
    assert sorted(COURSE_OPERATORS) == course_lib.kernels.__all__


def test_tied_parameters_stay_tied_and_frozen_ones_frozen() -> None:
    model = nn.Sequential(nn.Linear(3, 3), nn.Linear(3, 3))
    model[1].weight = model[0].weight
    model[1].bias.requires_grad_(False)
    again = _rebuilt(fx.symbolic_trace(model))
    first, second = again.get_submodule("0"), again.get_submodule("1")
    assert first.weight is second.weight
    assert not cast(torch.Tensor, second.bias).requires_grad


def test_a_weight_read_beside_its_own_module_is_the_same_weight() -> None:
    class Program(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.linear = nn.Linear(3, 3)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.linear(x) @ self.linear.weight

    again = _rebuilt(fx.symbolic_trace(Program()))
    assert [name for name, _ in again.named_parameters()] == ["linear.weight", "linear.bias"]


def test_rebuilding_leaves_the_random_state_alone() -> None:
    data, tensors = to_data(fx.symbolic_trace(Everything()))
    state = torch.get_rng_state()
    from_data(data, tensors)
    assert torch.equal(state, torch.get_rng_state())


def test_the_tables_name_only_what_pytorch_has() -> None:
    assert not [name for name in TORCH if not hasattr(torch, name)]
    assert not [name for name in FUNCTIONAL if not hasattr(F, name)]
    assert not [name for name in METHODS if not hasattr(torch.Tensor, name)]
    assert all(f"torch.ops.aten.{name}" in functions() for name in ATEN)


class Hooked(nn.Module):
    def __init__(self, prepare: Callable[[nn.Module], object]) -> None:
        super().__init__()
        self.act = nn.GELU()
        prepare(self.act)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return cast(torch.Tensor, self.act(x))


PREPARATIONS: dict[str, Callable[[nn.Module], object]] = {
    "forward_hook": lambda m: m.register_forward_hook(lambda *_: None),
    "forward_pre_hook": lambda m: m.register_forward_pre_hook(lambda *_: None),
    "backward_hook": lambda m: m.register_full_backward_hook(lambda *_: None),
    "backward_pre_hook": lambda m: m.register_full_backward_pre_hook(lambda *_: None),
    "own_forward": lambda m: setattr(m, "forward", torch.relu),
    "subclass": lambda m: setattr(m, "__class__", type("GELU", (nn.GELU,), {})),
}


@pytest.mark.parametrize("preparation", PREPARATIONS)
def test_a_module_that_does_more_than_its_class_is_not_written(preparation: str) -> None:
    model = Hooked(PREPARATIONS[preparation])
    tracer = type("Tracer", (fx.Tracer,), {"is_leaf_module": lambda self, module, path: True})()
    gm = fx.GraphModule(model, tracer.trace(model))
    with pytest.raises(GraphError, match="Node 'act'"):
        to_data(gm)


def _graph_calling(target: object, *args: object) -> fx.GraphModule:
    graph = fx.Graph()
    x = graph.placeholder("x")
    graph.output(graph.call_function(cast(Callable[..., object], target), (x, *args), name="bad"))
    return fx.GraphModule(nn.Module(), graph)


REFUSED_NODES: dict[str, tuple[object, ...]] = {
    "a_function_of_ones_own": (lambda x: x,),
    "a_function_outside_the_table": (torch.save,),
    "os_system": (__import__("os").system,),
    "a_device": (torch.zeros_like, torch.device("cpu")),
    "a_complex_number": (operator.add, 1j),
    "a_huge_integer": (operator.add, 2**63),
    "a_set": (torch.add, {1}),
}


@pytest.mark.parametrize("case", REFUSED_NODES)
def test_what_is_not_allowed_is_refused_with_the_name_of_its_node(case: str) -> None:
    gm = _graph_calling(*REFUSED_NODES[case])
    with pytest.raises(GraphError, match="Node 'bad'"):
        to_data(gm)


def test_graphs_that_flatten_their_inputs_are_refused() -> None:
    def program(x: torch.Tensor, pair: dict[str, torch.Tensor]) -> torch.Tensor:
        return x + pair["a"]

    gm = fx.symbolic_trace(program, concrete_args={"pair": {"a": fx.PH}})
    with pytest.raises(GraphError, match="flattens"):
        to_data(gm)


def test_something_else_than_a_graph_module_is_refused() -> None:
    with pytest.raises(GraphError, match="expects a torch"):
        to_data(cast(fx.GraphModule, nn.Linear(2, 2)))
