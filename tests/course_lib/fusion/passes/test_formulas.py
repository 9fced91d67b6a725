"""A formula becomes its operator, in whatever order and spelling people write it; look-alikes are left alone."""

import copy
import math
from collections.abc import Callable

import pytest
import torch
import torch.nn.functional as F
from torch import fx, nn

from course_lib.fusion import Sdpa, fuse
from course_lib.fusion.expressions.formula_pattern import tolerance
from course_lib.graph import count_operators
from course_lib.verify import verify
from tests.course_lib.fusion.passes.formula_spellings import (
    GELU,
    GELU_AT_FP32,
    GELU_TANH,
    GELU_TANH_AT_FP32,
    INPUTS,
    LAYER_NORM,
    LOOKALIKES,
    OPERATORS,
    RMS_NORM,
    SILU,
    SOFTMAX,
    B,
    G,
    Program,
    Tensor,
    X,
    cdf,
    gelu_tanh,
    norm_by_squares,
    normed,
    softmax_by_methods,
    variance_of,
)
from tests.course_lib.fusion.passes.rewrites import fused, left_alone, normal, same

SIZES = ("builtins.getattr", "operator.getitem")  # of `x.shape[-1]` and `x.dtype`, which stay as dead code
AFTER = {"gemma": {"Tensor.type_as": 1}}  # a cast of the result is no part of the formula
CASES = {f"{operator}: {case}": (operator, case) for operator, cases in OPERATORS.items() for case in cases}


@pytest.mark.parametrize("name", CASES)
def test_every_spelling_becomes_the_operator_and_computes_the_same(name: str) -> None:
    operator, case = CASES[name]
    program = OPERATORS[operator][case]
    result = fused(program, INPUTS, "formulas")
    counts = count_operators(result.graph_module)
    counts = {call: count for call, count in counts.items() if call not in ("operator.add", *SIZES)}
    assert counts == {operator.partition("(")[0]: 1, **AFTER.get(case, {})}
    assert ("tanh" in operator) == ("tanh" in result.graph_module.code)
    short = case in GELU_AT_FP32 or case in GELU_TANH_AT_FP32
    dtypes = (torch.float32,) if short else (torch.float64, torch.float32)
    second = case != "bias only"  # PyTorch's layer_norm has no second gradient without a weight
    same(program, result, INPUTS, modes=("eval",), dtypes=dtypes, second_gradients=second)  # no other mode matters


@pytest.mark.parametrize("case", LOOKALIKES)
def test_a_look_alike_is_left_alone_and_the_reason_given(case: str) -> None:
    program, rules = LOOKALIKES[case]
    left_alone(program, INPUTS, "formulas", *rules)


def test_a_row_mean_without_keepdim_is_no_row_mean_of_a_square() -> None:
    def program(x: Tensor) -> Tensor:
        return (x - x.mean(-1)) / torch.sqrt(x.var(-1, unbiased=False) + 1e-5)

    left_alone(program, (normal(6, 6),), "formulas")


def test_literals_are_checked_at_the_precision_of_the_program() -> None:
    program = GELU_AT_FP32["eight digits"]
    for dtype, rules in ((torch.float32, ()), (torch.bfloat16, ()), (torch.float64, ("literal",))):
        result = fuse(program, [value.to(dtype) for value in INPUTS], ("formulas",))
        assert tuple(refusal.rule for refusal in result.rejected) == rules
    assert tolerance(torch.bfloat16) == tolerance(torch.float32) > 1e8 * tolerance(torch.float64)


@pytest.mark.parametrize("program", [GELU_TANH["gpt-2"], LAYER_NORM["affine"]])
def test_powers_of_float16_may_overflow_so_those_formulas_stay(program: Program) -> None:
    left_alone(program, [value.half() for value in INPUTS], "formulas", "dtype")
    x = torch.full((1, 6), 300.0, dtype=torch.float16, requires_grad=True)
    gelu_tanh(x).sum().backward()
    assert x.grad is not None
    assert x.grad.isnan().all()  # which the operator's gradient is not


def _norm_of_16_bits(x: Tensor, g: Tensor) -> Tensor:
    wide = x.to(torch.float32)
    wide = wide * torch.rsqrt(wide.pow(2).mean(-1, keepdim=True) + 1e-6)
    return g * wide.to(x.dtype)


def _squared_at_16_bits(x: Tensor, g: Tensor) -> Tensor:
    variance = (x * x).float().mean(-1, keepdim=True)
    return g * (x * torch.rsqrt(variance + 1e-6).to(x.dtype))


def _less_exact(x: Tensor, g: Tensor) -> Tensor:
    return g * (x * torch.rsqrt(x.bfloat16().pow(2).mean(-1, keepdim=True) + 1e-6).to(x.dtype))


def _more_exact(x: Tensor, g: Tensor) -> Tensor:
    return g * (x * torch.rsqrt(x.double().pow(2).mean(-1, keepdim=True) + 1e-6).to(x.dtype))


CASTS: dict[str, tuple[Callable[..., Tensor], torch.dtype, tuple[str, ...]]] = {
    "llama at bfloat16": (_norm_of_16_bits, torch.bfloat16, ()),
    "llama at float16": (_norm_of_16_bits, torch.float16, ()),
    "llama at float32": (_norm_of_16_bits, torch.float32, ()),
    "squared at bfloat16": (_squared_at_16_bits, torch.bfloat16, ()),
    "squared at float16": (_squared_at_16_bits, torch.float16, ("dtype",)),
    "less exact": (_less_exact, torch.float32, ("dtype",)),
    "more exact": (_more_exact, torch.float32, ("dtype",)),
}


@pytest.mark.parametrize("case", CASTS)
@pytest.mark.parametrize("exported", [False, True], ids=["torch.fx", "torch.export"])
def test_casts_to_float32_and_back_belong_to_the_operator_and_others_do_not(case: str, exported: bool) -> None:
    program, dtype, rules = CASTS[case]
    inputs = (normal(4, 64).to(dtype) * 300, normal(64).to(dtype))
    graph = torch.export.export(_AsModule(program), inputs) if exported else program
    result = fuse(graph, inputs, ("formulas",), check=False)
    assert result.num_matches == (not rules), result.explain()
    assert tuple(refusal.rule for refusal in result.rejected) == rules
    if not rules:
        truth = program(*(one.double() for one in inputs)) if dtype == torch.float32 else None
        exact = torch.nn.functional.rms_norm(inputs[0].double(), (64,), inputs[1].double(), 1e-6)
        errors = [(run(*inputs).double() - exact).abs().max() for run in (result.graph_module, program)]
        assert errors[0] <= errors[1] * 1.5 + 1e-6
        assert truth is None or torch.allclose(truth, exact, atol=1e-4)


class _AsModule(nn.Module):
    def __init__(self, run: Callable[..., Tensor]) -> None:
        super().__init__()
        self.run = run

    def forward(self, *inputs: Tensor) -> Tensor:
        return self.run(*inputs)


@pytest.mark.parametrize(
    "name", ["llama.modeling_llama.Llama", "gemma.modeling_gemma.Gemma", "qwen3.modeling_qwen3.Qwen3"]
)
def test_the_norms_of_hugging_face_are_one_operator(name: str) -> None:
    import importlib

    module, _, kind = name.rpartition(".")
    build = getattr(importlib.import_module(f"transformers.models.{module}"), f"{kind}RMSNorm")
    for dtype in (torch.float32, torch.bfloat16):
        norm = build(8).to(dtype)
        torch.nn.init.normal_(norm.weight)
        x = normal(4, 8).to(dtype)
        for given in (norm, torch.export.export(norm, (x,))):
            result = fuse(given, (x,))
            assert count_operators(result.graph_module)["torch.nn.functional.rms_norm"] == 1
            torch.testing.assert_close(result.graph_module(x), norm(x), rtol=2e-2 if dtype == torch.bfloat16 else 1e-5,
                                       atol=1e-5)  # fmt: skip


ONE_EACH = (
    RMS_NORM["llama"],
    GELU["bert"],
    GELU_TANH["gpt-2"],
    SILU["product"],
    SOFTMAX["maximum of a pair"],
    LAYER_NORM["affine"],
)


@pytest.mark.parametrize("program", ONE_EACH)
def test_nan_infinity_and_empty_tensors_stay_what_they_were(program: Program) -> None:
    odd = normal(4, 6)
    odd[0, 0], odd[1, 1] = math.nan, -math.inf
    odd[2] *= 1e30
    for x in (odd, normal(0, 6), normal(1, 6), normal(2, 0, 6), 9 * normal(5, 6)):
        same(program, fused(program, (x, G, B), "formulas"), (x, G, B), dtypes=(torch.float64,))


@pytest.mark.parametrize("program", ONE_EACH)
def test_layouts_stay_what_they_were_or_the_formula_stays(program: Program) -> None:
    for x in (normal(6, 5).t(), normal(5, 12)[:, ::2], normal(1, 6).expand(5, 6), normal(5, 6, 2)[..., 0]):
        result = fuse(program, (x, G, B), ("formulas",))
        assert result.num_matches or [refusal.rule for refusal in result.rejected] == ["shape"]
        same(program, result, (x, G, B), dtypes=(torch.float64,))


def test_an_affine_that_layer_norm_does_not_take_stays_outside() -> None:
    def program(x: Tensor, scale: Tensor, shift: Tensor) -> Tensor:
        return scale * normed(x, variance_of(x, unbiased=False)) + shift

    inputs = (X, normal(5, 1), normal(5, 6))
    result = fused(program, inputs, "formulas")
    counts = count_operators(result.graph_module)
    assert counts == {"torch.nn.functional.layer_norm": 1, "operator.mul": 1, "operator.add": 1}
    same(program, result, inputs)


class Block(nn.Module):
    """Half a Transformer layer with nothing but formulas."""

    def __init__(self) -> None:
        super().__init__()
        self.up, self.down, self.dropout = nn.Linear(6, 12, bias=False), nn.Linear(12, 6), nn.Dropout(0.3)
        self.up_bias, self.gamma, self.beta = (nn.Parameter(normal(size)) for size in (12, 6, 6))

    def forward(self, x: Tensor) -> Tensor:
        hidden = self.up(x) + self.up_bias
        hidden = hidden * 0.5 * (1.0 + torch.erf(hidden / math.sqrt(2.0)))
        y = x + self.dropout(self.down(hidden))
        mean = y.mean(-1, keepdim=True)
        variance = (y - mean).pow(2).mean(-1, keepdim=True)
        return self.gamma * (y - mean) / torch.sqrt(variance + 1e-12) + self.beta


def test_the_fusions_take_what_the_formulas_were() -> None:
    block = Block()
    result = fuse(block, (X,))
    assert {name: count for name, count in result.num_matches_by_pass.items() if count} == {
        "common_subexpressions": 1,
        "formulas": 2,
        "bias_gelu": 1,
        "bias_dropout_residual_layer_norm": 1,
    }
    same(block, result, (X,))


def _given_to_a_backend(program: Program, *inputs: Tensor) -> tuple[fx.GraphModule, list[object]]:
    graphs: list[tuple[fx.GraphModule, list[object]]] = []

    def backend(gm: fx.GraphModule, given: list[object]) -> Program:
        graphs.append((gm, given))
        return gm

    torch.compile(program, backend=backend)(*inputs)
    (graph,) = graphs
    return graph


def test_graphs_from_export_and_from_dynamo_are_read_as_well() -> None:
    block = Block().eval()
    exported = torch.export.export(block, (X,))
    for given, inputs in ((exported, (X,)), _given_to_a_backend(block, X)):
        result = fuse(given, inputs)
        counts = result.num_matches_by_pass
        assert (counts["formulas"], counts["bias_gelu"], counts["bias_dropout_residual_layer_norm"]) == (2, 1, 1)


def _residual(x: Tensor, r: Tensor, g: Tensor, b: Tensor) -> Tensor:
    return b + g * norm_by_squares(r + x)


def _attention(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    return softmax_by_methods(q @ k.transpose(-2, -1) / math.sqrt(4)) @ v


def test_a_residual_sum_and_attention_are_fused_too() -> None:
    inputs = (X, normal(5, 6), G, B)
    result = fuse(_residual, inputs)
    assert result.num_matches_by_pass["residual_layer_norm"] == 1
    same(_residual, result, inputs)
    qkv = tuple(normal(2, 3, size, 4) for size in (5, 7, 7))
    result = fuse(_attention, qkv, ("formulas", Sdpa()))
    assert count_operators(result.graph_module) == {"Attention": 1}
    same(_attention, result, qkv)


@pytest.mark.parametrize("name", ["NewGELU", "FastGELU", "AccurateGELU", "GELU", "QuickGELU", "Mish", "Laplace"])
def test_the_activations_of_hugging_face_are_told_apart(name: str) -> None:
    from transformers import activations

    kind = getattr(activations, f"{name}Activation")
    program = kind(use_gelu_python=True) if name == "GELU" else kind()
    result = fuse(program, (X,))
    expected = name.endswith("GELU") and name != "QuickGELU"
    assert count_operators(result.graph_module).get("torch.nn.functional.gelu", 0) == expected
    same(program, result, (X,), dtypes=(torch.float32,))


def test_a_value_that_is_computed_twice_is_one_after_common_subexpressions() -> None:
    def program(x: Tensor, g: Tensor, b: Tensor) -> Tensor:
        return (x + g) * cdf(x + g)

    result = fuse(program, INPUTS)
    assert count_operators(result.graph_module) == {"torch.ops.course_lib.bias_gelu": 1}
    same(program, result, INPUTS)


def test_a_formula_within_autocast_stays() -> None:
    def program(x: Tensor) -> Tensor:
        with torch.autocast("cpu", torch.bfloat16):
            y = x * cdf(x)
        return y * cdf(y)

    result = fuse(*_given_to_a_backend(program, X), ("formulas",))
    assert (result.num_matches, [refusal.rule for refusal in result.rejected]) == (1, ["regime"])


def test_a_literal_that_a_checkpoint_holds_is_none() -> None:
    class Held(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("root", torch.tensor(2.0).sqrt())

        def forward(self, x: Tensor) -> Tensor:
            return x * 0.5 * (1 + torch.erf(x / self.root))

    left_alone(Held(), (X,), "formulas")


def test_no_constant_enters_the_state_dict() -> None:
    class Made(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            return torch.sigmoid(x) * torch.tensor([1.0, 2.0, 3.0, 4.0, 5.0, 6.0])

    for passes in ((), None):
        result = fuse(Made(), (X,), passes)
        assert result.graph_module.state_dict() == {}
        same(Made(), result, (X,))
        again = fuse(result.graph_module, (X,), passes)
        assert again.num_matches == 0
        assert verify(Made(), again.graph_module, (X,)).passed


def test_shapes_must_be_known() -> None:
    from course_lib.fusion.passes.formulas import Formulas

    result = Formulas().call(torch.fx.symbolic_trace(lambda x: x * cdf(x)))
    assert [refusal.rule for refusal in result.rejected] == ["shape unknown"]
    assert F.gelu not in [node.target for node in result.graph_module.graph.nodes]


class OfARows(nn.Module):
    def forward(self, x: Tensor, y: Tensor) -> Tensor:
        return 0.5 * x * (y.shape[0] - 3 + torch.erf(x / math.sqrt(2))) + y.sum() * 0


def test_a_dynamic_size_is_no_number() -> None:
    inputs = (normal(4, 6), normal(4))
    dynamic = {"x": None, "y": {0: torch.export.Dim("rows", min=2)}}
    exported = torch.export.export(OfARows(), inputs, dynamic_shapes=dynamic)
    gm = fuse(exported, inputs, ("formulas",)).graph_module
    for rows in (4, 7):
        given = (inputs[0], normal(rows))
        torch.testing.assert_close(gm(*given), OfARows()(*given))


def _overwritten(x: Tensor) -> Tensor:
    one = torch.tensor(1.0)
    one.copy_(x.mean())
    return 0.5 * x * (one + torch.erf(x / math.sqrt(2)))


def _overwritten_through_a_view(x: Tensor) -> Tensor:
    one = torch.tensor(1.0)
    result = 0.5 * x * (one + torch.erf(x / math.sqrt(2)))
    one.view(1).mul_(x.sum())
    return result


class WithABufferOfThatName(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("_tensor_constant0", torch.tensor(1.0))

    def forward(self, x: Tensor) -> Tensor:
        return 0.5 * x * (self._tensor_constant0 + torch.erf(x / math.sqrt(2)))


@pytest.mark.parametrize("program", [_overwritten, _overwritten_through_a_view, WithABufferOfThatName()])
def test_a_tensor_that_may_change_is_no_number(program: Callable[[Tensor], Tensor]) -> None:
    x = normal(4, 6)
    result = fuse(program, (x,), ("formulas",))
    assert result.num_matches == 0
    if isinstance(program, nn.Module):
        changed = copy.deepcopy(result.graph_module)
        changed.load_state_dict({"_tensor_constant0": torch.tensor(3.0)})
        assert not torch.equal(changed(x), program(x))
