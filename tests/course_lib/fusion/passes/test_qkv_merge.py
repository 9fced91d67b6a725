"""Projections of one tensor become one wider product, with the program's own parameters; look-alikes stay apart."""

import copy
import math
import pickle
from collections.abc import Callable

import pytest
import torch
import torch.nn.functional as F
from torch import nn
from torch.nn.utils import parametrizations

from course_lib.fusion import FusionResult, fuse
from course_lib.fusion.passes.qkv_merge import QkvMerge
from course_lib.graph import count_operators
from course_lib.models.transformer import SelfAttention, TransformerConfig
from course_lib.verify import verify
from tests.course_lib.fusion.passes.rewrites import fused, left_alone, normal, same

Tensor = torch.Tensor
ROWS = normal(3, 20, 4)
MERGED = {"operator.getitem": 3, "torch.cat": 2, "torch.nn.functional.linear": 1, "torch.split": 1}


class Three(nn.Module):
    """Three projections of one tensor, whose results meet in one."""

    def __init__(self, *, bias: bool = True, widths: tuple[int, int, int] = (4, 4, 4)) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.q, self.k, self.v = (nn.Linear(4, width, bias=bias) for width in widths)

    def forward(self, x: Tensor) -> object:
        return self.q(x) * self.k(x) - torch.tanh(self.v(x))


class Functional(Three):
    def forward(self, x: Tensor) -> object:
        q = F.linear(bias=self.q.bias, weight=self.q.weight, input=x)
        return torch.sigmoid(q) * self.k(x) - F.linear(x, self.v.weight, self.v.bias)


class Grouped(Three):
    """Fewer heads of keys and values than of queries."""

    def forward(self, x: Tensor) -> object:
        return torch.tanh(self.q(x)), self.k(x) * 2 - self.v(x)


class Two(Three):
    def forward(self, x: Tensor) -> object:
        return self.q(x) * self.k(x)


class Crossed(Three):
    """Queries of one tensor, keys and values of another."""

    def forward(self, x: Tensor, memory: Tensor) -> object:  # type: ignore[override]  # another program
        return self.q(x) * (self.k(memory) - torch.tanh(self.v(memory)))


class UsedElsewhere(Three):
    def forward(self, x: Tensor) -> object:
        return self.q(x) * self.k(x) - self.v(x) + self.v(x * 2)


MERGES: dict[str, tuple[Callable[[], nn.Module], tuple[Tensor, ...]]] = {
    "modules": (Three, (ROWS,)),
    "without bias": (lambda: Three(bias=False), (ROWS,)),
    "functions": (Functional, (ROWS,)),
    "other widths": (lambda: Grouped(widths=(8, 2, 2)), (ROWS,)),
    "two": (Two, (ROWS,)),
    "a matrix": (Three, (normal(40, 4),)),
    "strided rows": (Three, (normal(40, 3, 4).transpose(0, 1)[:, ::2],)),
    "keys and values": (Crossed, (normal(3, 20, 4), ROWS)),
    "one layer also used elsewhere": (UsedElsewhere, (ROWS,)),
}


@pytest.mark.parametrize("case", MERGES)
def test_projections_are_merged_and_nothing_else_changes(case: str) -> None:
    build, inputs = MERGES[case]
    program = build()
    result = fused(program, inputs, "qkv_merge")
    assert result.cost_before is not None
    assert result.cost_after is not None
    assert result.cost_after.bytes_moved < result.cost_before.bytes_moved
    same(program, result, inputs)


def test_the_graph_holds_one_product_and_says_what_it_is_made_of() -> None:
    result = fused(Three(), (ROWS,), "qkv_merge")
    found = count_operators(result.graph_module)
    assert {name: found[name] for name in MERGED} == MERGED
    assert "torch.nn.Linear" not in found
    merged = [node for node in result.graph_module.graph.nodes if "cat" in node.name]
    assert all("return self.q(x)" in str(node.stack_trace) for node in merged)


def test_the_parameters_stay_so_that_checkpoints_load_and_any_optimiser_updates_what_is_used() -> None:
    program = Three()
    before = torch.optim.SGD(program.parameters(), lr=1e-5)  # made before the merge
    gm = fused(program, (ROWS,), "qkv_merge").graph_module
    assert gm.state_dict().keys() == program.state_dict().keys()
    other = Three().requires_grad_(False)
    for parameter in other.parameters():
        parameter.add_(1)
    gm.load_state_dict(other.state_dict())
    torch.testing.assert_close(gm(ROWS), other(ROWS))
    for optimiser in (before, torch.optim.AdamW(gm.parameters(), lr=1e-3)):
        last = gm(ROWS).sum()
        optimiser.zero_grad()
        last.backward()
        optimiser.step()
        assert gm(ROWS).sum() < last
        torch.testing.assert_close(gm(ROWS), program(ROWS))


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda gm: pickle.loads(pickle.dumps(gm))], ids=["copy", "pickle"])
def test_copies_have_parameters_of_their_own(copied: Callable[[nn.Module], nn.Module]) -> None:
    program = Three()
    gm = fused(program, (ROWS,), "qkv_merge").graph_module
    twin = copied(gm)
    expected = gm(ROWS)
    with torch.no_grad():
        gm.get_parameter("k.weight").zero_()
    torch.testing.assert_close(twin(ROWS), expected)
    assert not torch.equal(gm(ROWS), expected)


class Chained(Three):
    """Two projections of what is a projection itself."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.Linear(4, 4), nn.Linear(4, 4)

    def forward(self, x: Tensor) -> object:
        q = self.q(x)
        return self.first(q) * self.second(q) - self.k(x) * self.v(x)


def test_projections_of_a_projection_are_merged_too() -> None:
    program, inputs = Chained(), (normal(60, 4),)
    same(program, fused(program, inputs, "qkv_merge", 2), inputs)


def test_a_reader_that_would_have_to_copy_its_part_counts() -> None:
    result = fuse(Chained(), (ROWS,), ("qkv_merge",))  # a linear layer copies rows that lie apart in a cube
    assert [(refusal.nodes, refusal.rule) for refusal in result.rejected] == [(("q", "k", "v"), "traffic")]


class Tied(Three):
    def __init__(self) -> None:
        super().__init__()
        self.k.weight = self.q.weight


def test_tied_weights_stay_tied_and_get_both_gradients() -> None:
    program = Tied()
    same(program, fused(program, (ROWS,), "qkv_merge"), (ROWS,))


def test_our_attention_is_merged() -> None:
    config = TransformerConfig(hidden_size=12, num_heads=3, intermediate_size=12, num_layers=1, dropout=0.3)

    class Layer(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.attention = SelfAttention(config)

        def forward(self, hidden: Tensor) -> object:
            return self.attention(hidden, None)

    program, inputs = Layer(), (normal(4, 16, 12),)
    same(program, fused(program, inputs, "qkv_merge"), inputs)


def _hugging_face_bert(layers: int) -> nn.Module:
    from transformers import BertConfig, BertModel

    sizes = {"vocab_size": 50, "hidden_size": 8, "num_attention_heads": 2, "intermediate_size": 16}

    class Hidden(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.bert = BertModel(BertConfig(num_hidden_layers=layers, **sizes), add_pooling_layer=False)

        def forward(self, tokens: Tensor) -> Tensor:
            hidden: Tensor = self.bert(tokens).last_hidden_state
            return hidden

    return Hidden().eval()


def test_a_whole_bert_of_hugging_face_is_merged_in_its_exported_graph() -> None:
    model, tokens = _hugging_face_bert(2), torch.arange(48).reshape(3, 16)
    result = fused(torch.export.export(model, (tokens,)), (tokens,), "qkv_merge", 2)
    assert result.graph_module.state_dict().keys() >= model.state_dict().keys()
    with torch.no_grad():
        torch.testing.assert_close(result.graph_module(tokens), model(tokens))


def _given_to_a_backend(program: nn.Module, x: Tensor) -> tuple[torch.fx.GraphModule, list[object]]:
    graphs: list[tuple[torch.fx.GraphModule, list[object]]] = []

    def backend(gm: torch.fx.GraphModule, inputs: list[object]) -> Callable[..., object]:
        graphs.append((gm, inputs))
        return gm

    torch.compile(program, backend=backend)(x)
    (graph,) = graphs
    return graph


def test_parameters_that_are_inputs_of_the_graph_are_merged() -> None:
    gm, inputs = _given_to_a_backend(Three(), ROWS)
    result = fused(gm, inputs, "qkv_merge")
    same(gm, result, inputs, modes=("eval",))


def test_a_whole_bert_of_hugging_face_is_merged_in_the_graph_of_a_backend() -> None:
    gm, inputs = _given_to_a_backend(_hugging_face_bert(1), torch.arange(48).reshape(3, 16))
    result = fused(gm, inputs, "qkv_merge")
    torch.testing.assert_close(result.graph_module(*inputs), gm(*inputs))


def test_nan_and_infinity_stay_in_the_projection_that_has_them() -> None:
    program = Three()
    gm = fused(program, (ROWS,), "qkv_merge").graph_module
    with torch.no_grad():
        program.k.weight[0, 0], program.v.weight[1, 1] = math.inf, math.nan
        torch.testing.assert_close(gm(ROWS), program(ROWS), equal_nan=True)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.float32, torch.float64])
def test_results_have_the_dtype_that_they_had_also_under_autocast(dtype: torch.dtype) -> None:
    program = Three().to(dtype)
    x = ROWS.to(dtype)
    gm = fused(program, (x,), "qkv_merge").graph_module
    with torch.autocast("cpu", torch.bfloat16, enabled=dtype == torch.float32):
        found, expected = gm(x), program(x)
    torch.testing.assert_close(found, expected)


def test_parameters_of_two_dtypes_are_refused() -> None:
    program = Three()
    program.k.double()
    gm = torch.fx.symbolic_trace(program)
    for node in gm.graph.nodes:  # PyTorch refuses such a program, so nothing but the shapes can be known
        node.meta["val"] = fuse(Three(), (ROWS,), ()).graph_module.graph.output_node().args[0].meta["val"]  # type: ignore[union-attr]
    assert {refusal.rule for refusal in QkvMerge().call(gm).rejected} >= {"dtype"}


def _with(change: Callable[[Three], object]) -> Callable[[], nn.Module]:
    def build() -> nn.Module:
        program = Three()
        change(program)
        return program

    return build


def _without_bias(program: Three) -> None:
    program.k = nn.Linear(4, 4, bias=False)


PARTNERS: dict[str, tuple[Callable[[Three], object], str]] = {
    "parametrised": (lambda program: parametrizations.weight_norm(program.k), "subclass"),
    "frozen": (lambda program: program.k.requires_grad_(False), "frozen"),
    "frozen weight": (lambda program: program.k.weight.requires_grad_(False), "frozen"),
    "no bias": (_without_bias, "one bias"),
}


@pytest.mark.parametrize("case", PARTNERS)
def test_one_that_differs_stays_and_the_others_are_merged(case: str) -> None:
    change, rule = PARTNERS[case]
    program = _with(change)()
    result = fuse(program, (ROWS,), ("qkv_merge",))
    assert result.num_matches == 1
    (refusal,) = result.rejected
    assert (refusal.rule, refusal.nodes) == (rule, ("k",))
    assert refusal.remedy
    assert refusal.source
    same(program, result, (ROWS,))


class Written(Three):
    def forward(self, x: Tensor) -> object:
        q = self.q(x)
        x.mul_(2)
        return q * self.k(x)


class WeightWritten(Three):
    def forward(self, x: Tensor) -> object:
        q = F.linear(x, self.q.weight)
        self.k.weight.data.mul_(2)
        return q * F.linear(x, self.k.weight)


class ResultWritten(Three):
    def forward(self, x: Tensor) -> object:
        return self.q(x).add_(1) * self.k(x)


class ViewWritten(Three):
    def forward(self, x: Tensor) -> object:
        q, k = self.q(x), self.k(x)
        q.transpose(0, 1)[0].zero_()
        return q * k


class Returned(Three):
    def forward(self, x: Tensor) -> object:
        return self.q(x).transpose(0, 1), self.k(x)


class Flat(Three):
    def forward(self, x: Tensor) -> object:
        return self.q(x).view(-1) * self.k(x).reshape(-1)


class LaidOut(Three):
    def forward(self, x: Tensor) -> object:
        return self.q(x) * self.k(x).stride(0)


class Computed(Three):
    def forward(self, x: Tensor) -> object:
        return F.linear(x, self.q.weight * 2) * F.linear(x, self.k.weight)


class Recomputed(Three):
    def forward(self, x: Tensor) -> object:
        return F.linear(x, self.q.weight * 2) * F.linear(x, self.k.weight.abs())


APART: dict[str, tuple[type[nn.Module], tuple[str, ...]]] = {
    "the input changes between": (Written, ("mutation",)),
    "a weight changes between": (WeightWritten, ("mutation",)),
    "a result changes": (ResultWritten, ("mutation",)),
    "a view of a result changes": (ViewWritten, ("mutation",)),
    "both are returned": (Returned, ("is an output", "is an output")),
    "flattened": (Flat, ("strides",)),
    "strides are asked for": (LaidOut, ("no gradient", "no gradient")),
    "a weight is computed": (Computed, ("argument",)),
    "both weights are computed": (Recomputed, ("argument", "argument")),
}


@pytest.mark.parametrize("case", APART)
def test_projections_that_must_stay_apart_do_and_the_reason_is_given(case: str) -> None:
    build, rules = APART[case]
    left_alone(build(), (ROWS,), "qkv_merge", *rules)


def test_few_rows_stay_apart_because_the_weights_weigh_more() -> None:
    left_alone(Three(), (normal(1, 4),), "qkv_merge", "traffic")
    left_alone(Three(), (normal(0, 4),), "qkv_merge", "traffic")


def test_switching_autocast_between_keeps_them_apart() -> None:
    class Switched(Three):
        def forward(self, x: Tensor) -> object:
            q = self.q(x)
            with torch.autocast("cpu", torch.bfloat16):
                return q * self.k(x)

    gm, inputs = _given_to_a_backend(Switched(), ROWS)
    result = fuse(gm, inputs, ("qkv_merge",))
    assert result.num_matches == 0
    assert [refusal.rule for refusal in result.rejected] == ["regime"]


def test_one_projection_of_each_tensor_is_nothing_to_speak_of() -> None:
    class Single(Three):
        def forward(self, x: Tensor) -> object:
            return self.q(x) * self.k(x * 2)

    left_alone(Single(), (ROWS,), "qkv_merge")


def test_it_runs_only_when_named_and_shapes_must_be_known() -> None:
    assert "qkv_merge" not in fuse(Three(), (ROWS,)).num_matches_by_pass
    result = QkvMerge().call(torch.fx.symbolic_trace(Three()))
    assert isinstance(result, FusionResult)
    assert {refusal.rule for refusal in result.rejected} == {"shape unknown"}


def test_later_passes_see_that_the_parts_share_memory() -> None:
    gm = fused(Three(), (ROWS,), "qkv_merge").graph_module
    parts = [node for node in gm.graph.nodes if "getitem" in node.name]
    assert len({node.meta["val"].untyped_storage()._cdata for node in parts}) == 1
    assert verify(Three(), gm, (ROWS,)).passed
