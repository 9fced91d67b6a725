"""What is written in place becomes a new tensor where nobody can tell, and stays where somebody can."""

import math
from collections.abc import Callable

import pytest
import torch
import torch.nn.functional as F
from torch import fx, nn

from course_lib.fusion import fuse
from course_lib.graph import count_operators
from course_lib.verify import verify
from tests.course_lib.fusion.passes.rewrites import left_alone, normal, same

Tensor = torch.Tensor
Program = Callable[..., object]
X, R, B = normal(4, 6), normal(4, 6) + 3, normal(6)
INPUTS = (X, R, B)


def _statement(x: Tensor, r: Tensor, b: Tensor) -> Tensor:
    h = x * 2
    h.add_(b)
    return F.gelu(h)


def _chain(x: Tensor, r: Tensor, b: Tensor) -> Tensor:
    h = x + r
    h.mul_(2).add_(b, alpha=3)
    h.sub_(r).div_(2)
    return h.relu_()


def _view_of_new(x: Tensor, r: Tensor, b: Tensor) -> Tensor:
    h = x * 2
    h.add_(b)
    return h.view(-1)[:3].clone().mul_(2) + h.sum()


def _view_read_before(x: Tensor, r: Tensor, b: Tensor) -> Tensor:
    h = x * 2
    total = h[0].sum()
    return h.add_(b) + total


def _part_of_new(x: Tensor, r: Tensor, b: Tensor) -> Tensor:
    h = x * 2
    h[0].add_(1)  # stays: the rest of h is read afterwards
    return h.mul_(r)


def _returned(x: Tensor, r: Tensor, b: Tensor) -> tuple[Tensor, Tensor]:
    h = x * 2
    y = F.gelu(h.add_(b))
    return h, y


def _layout_kept(x: Tensor, r: Tensor, b: Tensor) -> Tensor:
    return torch.empty_like(x).copy_(x).expand(2, 4, 6).contiguous().transpose(0, 2).add_(1)[0]


def _unused_result(x: Tensor, r: Tensor, b: Tensor) -> Tensor:
    h = torch.zeros_like(x)
    h.add_(r)
    return h * x


class Modules(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear, self.dropout = nn.Linear(6, 6), nn.Dropout(0.3, inplace=True)
        self.relu, self.silu = nn.ReLU(inplace=True), nn.SiLU(inplace=True)

    def forward(self, x: Tensor, r: Tensor, b: Tensor) -> Tensor:
        return self.silu(self.relu(self.dropout(self.linear(x))) + r)


# Program, and how many calls in place become functional.
CASES: dict[str, tuple[Program, int]] = {
    "gelu after a sum in place": (_statement, 1),
    "a chain of statements": (_chain, 5),
    "functional relu": (lambda x, r, b: F.relu(x + b, inplace=True) + F.relu(x * r, True), 2),
    "activations": (lambda x, r, b: (x * r).sigmoid_() + (x + r).tanh_() + F.silu(x * 2, inplace=True), 3),
    "functions": (lambda x, r, b: torch.relu_(x * 2) + (x * 2).exp_() + torch.sqrt_(r + 9), 3),
    "gelu, then a sum in place": (lambda x, r, b: F.gelu(x).add_(r), 1),
    "dropout": (lambda x, r, b: F.dropout(x * 2, 0.5, True, True) + torch.dropout_(x * 2, 0.5, True), 2),
    "scaled product": (lambda x, r, b: (x * 2).addcmul_(x, r, value=0.5).pow_(2), 2),
    "views made afterwards": (_view_of_new, 2),
    "a view that was read before": (_view_read_before, 1),
    "a part of it": (_part_of_new, 1),
    "the changed tensor is returned": (_returned, 1),
    "a dense layout, which a new tensor has too": (_layout_kept, 1),
    "the result is not used": (_unused_result, 1),
    "modules": (Modules(), 3),
}


@pytest.mark.parametrize("case", CASES)
def test_what_nobody_else_sees_becomes_functional_and_computes_the_same(case: str) -> None:
    program, count = CASES[case]
    result = fuse(program, INPUTS, ("out_of_place",))
    assert result.num_matches == count, result.explain()
    same(program, result, INPUTS)
    again = fuse(result.graph_module, INPUTS, ("out_of_place",))
    assert again.num_matches == 0
    assert count_operators(again.graph_module) == count_operators(result.graph_module)


def _input(x: Tensor, r: Tensor, b: Tensor) -> Tensor:
    return F.gelu(x.add_(b))


def _view_of_input(x: Tensor, r: Tensor, b: Tensor) -> Tensor:
    return F.relu(x.view(-1), inplace=True) * 2


def _maybe_input(x: Tensor, r: Tensor, b: Tensor) -> Tensor:
    return F.dropout(x, 0.5, training=False).add_(b)


def _maybe_view(x: Tensor, r: Tensor, b: Tensor) -> Tensor:
    return x.reshape(3, 8).mul_(2)


def _converted(x: Tensor, r: Tensor, b: Tensor) -> Tensor:
    return x.float().mul_(2)


def _view_read_after(x: Tensor, r: Tensor, b: Tensor) -> Tensor:
    h = x * 2
    row = h[0]
    h.add_(b)
    return row.sum() + h


def _base_read_after(x: Tensor, r: Tensor, b: Tensor) -> Tensor:
    h = x * 2
    h[:2].relu_()
    return h * 3


def _view_returned(x: Tensor, r: Tensor, b: Tensor) -> tuple[Tensor, Tensor]:
    h = x * 2
    flat = h.view(-1)
    return F.relu_(h), flat


def _detached(x: Tensor, r: Tensor, b: Tensor) -> Tensor:
    h = x * 2
    h.detach().add_(1)
    return h * 3


def _type_kept(x: Tensor, r: Tensor, b: Tensor) -> Tensor:
    return x.bfloat16().mul(2).add_(r)


def _every_second_column(x: Tensor, r: Tensor, b: Tensor) -> Tensor:
    return (x * 2)[:, ::2].add_(1)


def _out(x: Tensor, r: Tensor, b: Tensor) -> Tensor:
    return torch.add(x, r, out=torch.empty_like(r))


class Held(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("count", torch.zeros(6))
        self.weight, self.hooked, self.linear = nn.Parameter(torch.ones(6)), nn.ReLU(inplace=True), nn.Linear(6, 6)


class Counts(Held):
    def forward(self, x: Tensor, r: Tensor, b: Tensor) -> Tensor:
        return self.count.mul_(b) * x


class Normalises(Held):
    def forward(self, x: Tensor, r: Tensor, b: Tensor) -> Tensor:
        return self.weight.detach().mul_(0.5) * x


class Hooked(Held):
    def __init__(self) -> None:
        super().__init__()
        self.hooked.register_forward_hook(lambda *_: None)

    def forward(self, x: Tensor, r: Tensor, b: Tensor) -> Tensor:
        return self.hooked(x * 2)


class Stashed(Held):
    def __init__(self) -> None:
        super().__init__()
        self.linear.register_forward_hook(lambda *_: None)

    def forward(self, x: Tensor, r: Tensor, b: Tensor) -> Tensor:
        return self.linear(x).add_(1)


def _saved_result(x: Tensor, r: Tensor, b: Tensor) -> Tensor:
    return torch.exp(x).add_(b)


def _saved_operand(x: Tensor, r: Tensor, b: Tensor) -> Tensor:
    h = x + r
    y = h.view(-1) ** 2
    return h.mul_(2) * y.sum()


STAY: dict[str, tuple[Program, tuple[str, ...]]] = {
    "an input": (_input, ("in place",)),
    "a view of an input": (_view_of_input, ("in place",)),
    "an input that dropout gives back": (_maybe_input, ("in place",)),
    "an input in another shape": (_maybe_view, ("in place",)),
    "an input of the right type already": (_converted, ("in place",)),
    "a view is read afterwards": (_view_read_after, ("in place",)),
    "the whole is read afterwards": (_base_read_after, ("in place",)),
    "a view is returned": (_view_returned, ("in place",)),
    "detached": (_detached, ("in place",)),
    "a buffer": (Counts(), ("in place",)),
    "a parameter": (Normalises(), ("in place",)),
    "hooks": (Hooked(), ("hooks",)),
    "an output that a hook has seen": (Stashed(), ("in place",)),
    "the type would change": (_type_kept, ("dtype",)),
    "the strides would change": (_every_second_column, ("shape",)),
    "a result that autograd keeps": (_saved_result, ("in place",)),
    "an operand that autograd keeps": (_saved_operand, ("in place",)),
    "out": (_out, ()),
}


@pytest.mark.parametrize("case", STAY)
def test_what_somebody_may_see_stays_and_the_reason_is_given(case: str) -> None:
    program, rules = STAY[case]
    result = left_alone(program, INPUTS, "out_of_place", *rules)
    if case not in ("a buffer", "a parameter"):
        same(program, result, INPUTS, gradients=False)


def test_the_callers_module_keeps_its_setting() -> None:
    program = Modules()
    fuse(program, INPUTS)
    assert program.dropout.inplace
    assert program.relu.inplace


def test_a_caller_still_sees_what_the_program_changes() -> None:
    def program(x: Tensor, b: Tensor) -> Tensor:
        x.mul_(2)
        h = x + 1
        h.add_(b)
        return F.gelu(h)

    x = X.clone()
    result = fuse(program, (X, B))
    assert result.num_matches_by_pass["out_of_place"] == 1
    assert result.num_matches_by_pass["bias_gelu"] == 1
    result.graph_module(x, B)
    assert torch.equal(x, 2 * X)
    assert verify(program, result.graph_module, (X, B), gradients=False).passed


def test_the_fusions_take_what_was_in_place() -> None:
    class Layer(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.norm, self.linear, self.dropout = nn.LayerNorm(6), nn.Linear(6, 6), nn.Dropout(0.3, inplace=True)

        def forward(self, x: Tensor, r: Tensor, b: Tensor) -> Tensor:
            h = self.dropout(self.linear(x))
            h.add_(r)
            h = self.norm(h)
            cdf = (h / math.sqrt(2)).erf_().add_(1).mul_(0.5)
            return cdf.mul_(h)

    layer = Layer()
    result = fuse(layer, INPUTS)
    counts = {name: count for name, count in result.num_matches_by_pass.items() if count}
    assert counts == {"out_of_place": 6, "formulas": 1, "bias_dropout_residual_layer_norm": 1}
    same(layer, result, INPUTS)


def test_a_view_of_what_was_rewritten_is_still_a_view_that_others_read() -> None:
    def program(x: Tensor, r: Tensor, b: Tensor) -> Tensor:
        h = x * r
        h.add_(b)
        h.view(-1).add_(r.sum())
        return F.gelu(h)

    result = fuse(program, INPUTS, ("out_of_place",))
    assert result.num_matches == 1
    same(program, result, INPUTS)


def test_dynamos_graphs_are_read_as_well() -> None:
    graphs: list[tuple[fx.GraphModule, list[object]]] = []

    def backend(gm: fx.GraphModule, given: list[object]) -> Program:
        graphs.append((gm, given))
        return gm

    torch.compile(_statement, backend=backend)(*INPUTS)
    result = fuse(*graphs[0], passes=("out_of_place", "bias_gelu"))
    assert result.num_matches_by_pass == {"out_of_place": 1, "bias_gelu": 1}


def test_shapes_must_be_known() -> None:
    from course_lib.fusion.passes.out_of_place import OutOfPlace

    result = OutOfPlace().call(fx.symbolic_trace(_statement))
    assert [refusal.rule for refusal in result.rejected] == ["shape unknown"]
