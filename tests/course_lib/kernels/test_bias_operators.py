"""`bias_gelu` and `bias_silu`: what eager computes, with all that PyTorch asks of an operator."""

from collections.abc import Callable

import pytest
import torch
import torch.nn.functional as F

from course_lib.errors import KernelError
from course_lib.kernels import bias_gelu, bias_silu
from tests.course_lib.kernels.bodies import BODIES, EACH_BODY, compare, use
from tests.drawn import some

Operator = Callable[[torch.Tensor, torch.Tensor], torch.Tensor]


def _fused_tanh(x: torch.Tensor, bias: torch.Tensor) -> torch.Tensor:
    return bias_gelu(x, bias, "tanh")


def _eager_tanh(x: torch.Tensor, bias: torch.Tensor) -> torch.Tensor:
    return F.gelu(x + bias, approximate="tanh")


PAIRS: list[tuple[Operator, Operator]] = [
    (bias_gelu, lambda x, bias: F.gelu(x + bias)),
    (_fused_tanh, _eager_tanh),
    (bias_silu, lambda x, bias: F.silu(x + bias)),
]
BOTH = pytest.mark.parametrize(("fused", "eager"), PAIRS, ids=["gelu", "gelu_tanh", "silu"])

LAYOUTS: dict[str, Callable[[], torch.Tensor]] = {
    "matrix": lambda: torch.randn(3, 5),
    "vector": lambda: torch.randn(5),
    "four_dimensions": lambda: torch.randn(2, 3, 1, 5),
    "permuted": lambda: torch.randn(5, 4, 3).permute(2, 1, 0),
    "every_second_column": lambda: torch.randn(4, 10)[:, ::2],
    "expanded": lambda: torch.randn(1, 5).expand(4, 5),
    "empty_batch": lambda: torch.randn(0, 5),
    "no_columns": lambda: torch.randn(3, 0),
    "many_rows": lambda: torch.randn(130, 17),
    "rows_of_a_wider_matrix": lambda: torch.randn(4, 2, 99)[..., 3:70],
    "a_whole_vector_and_one_more": lambda: torch.randn(2, 33),
}


@BOTH
@EACH_BODY
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16, torch.float16])
def test_outputs_and_gradients_are_those_of_eager(
    fused: Operator, eager: Operator, body: str, layout: str, dtype: torch.dtype, monkeypatch: pytest.MonkeyPatch
) -> None:
    use(body, monkeypatch)
    x = LAYOUTS[layout]().to(dtype)
    if layout == "every_second_column":
        x = torch.randn(4, 10, dtype=dtype)[:, ::2]
    bias = torch.randn(x.shape[-1], dtype=dtype)
    ours, theirs = _results(fused, x, bias), _results(eager, x, bias)
    assert ours[0].stride() == theirs[0].stride()
    compare(ours, theirs, _results(eager, x.double(), bias.double(), dtype), exact=body == "eager")


def _results(
    function: Operator, x: torch.Tensor, bias: torch.Tensor, sent: torch.dtype | None = None
) -> list[torch.Tensor]:
    """Return the output and both gradients; `sent` is the dtype in which the gradient of the output is made.

    Its signs alternate, so that the sum over rows has no partial sums far above its result, whose rounding would count.
    """
    xs, biases = x.detach().requires_grad_(), bias.clone().requires_grad_()
    output = function(xs, biases)
    order = torch.arange(output.numel()) * 7919 % max(output.numel(), 1)  # each number once: 7919 is prime
    grad = torch.linspace(-1, 1, output.numel(), dtype=sent or x.dtype)[order].to(x.dtype).view(output.shape)
    return [output.detach(), *torch.autograd.grad(output, (xs, biases), grad)]


@BOTH
def test_a_sum_that_overflows_in_half_precision_does_not_in_the_compiled_body(
    fused: Operator, eager: Operator, monkeypatch: pytest.MonkeyPatch
) -> None:
    x, bias = torch.tensor([[-4e4, 4e4, 1.0]], dtype=torch.float16), torch.full((3,), -4e4, dtype=torch.float16)
    assert eager(x, bias).isnan().tolist() == [[True, False, False]]
    use("compiled", monkeypatch)
    assert fused(x, bias).tolist() == [[0.0, 0.0, 0.0]]
    assert fused(-x, -bias)[0, 0].isinf()  # the result itself is larger than any number in float16
    use("eager", monkeypatch)
    torch.testing.assert_close(fused(x, bias), eager(x, bias), rtol=0, atol=0, equal_nan=True)


@BOTH
@EACH_BODY
def test_gradients_are_right_to_second_order(
    fused: Operator, eager: Operator, body: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    use(body, monkeypatch)
    x = torch.randn(3, 4, dtype=torch.float64, requires_grad=True)
    bias = torch.randn(4, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(fused, (x, bias))
    assert torch.autograd.gradgradcheck(fused, (x, bias))


@pytest.mark.parametrize("layout", ["matrix", "permuted", "expanded", "empty_batch"])
@pytest.mark.parametrize("requires_grad", [True, False])
@pytest.mark.parametrize("operator", ["bias_gelu", "bias_silu"])
@pytest.mark.parametrize("body", some(BODIES, 1, name="bodies of opcheck"))
def test_opcheck_finds_nothing_to_complain_about(
    layout: str, requires_grad: bool, operator: str, body: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    use(body, monkeypatch)
    x = LAYOUTS[layout]().requires_grad_(requires_grad)
    bias = torch.randn(5, requires_grad=requires_grad)
    torch.library.opcheck(getattr(torch.ops.course_lib, operator).default, (x, bias))


@BOTH
def test_the_inputs_stay_as_they_were_and_the_output_is_new(fused: Operator, eager: Operator) -> None:
    x, bias = torch.randn(3, 5), torch.randn(5)
    kept = x.clone(), bias.clone()
    output = fused(x, bias)
    output.add_(1)
    assert torch.equal(x, kept[0])
    assert torch.equal(bias, kept[1])


@BOTH
def test_what_is_infinite_or_no_number_is_where_eager_has_it_in_float64(
    fused: Operator, eager: Operator, monkeypatch: pytest.MonkeyPatch
) -> None:
    use("compiled", monkeypatch)  # PyTorch's own vectors give NaN for GELU of infinity in float32
    odd = [float("inf"), float("-inf"), float("nan"), 1e10, -1e10, 100.0, -100.0, 0.0, -0.0]
    x, bias = torch.tensor(odd * 8).reshape(2, 36), torch.zeros(36)
    for mine, other in zip(_results(fused, x, bias), _results(eager, x.double(), bias.double()), strict=True):
        torch.testing.assert_close(mine, other.float(), equal_nan=True)


@BOTH
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_each_number_of_16_bits_gives_nearly_the_nearest_result(
    fused: Operator, eager: Operator, dtype: torch.dtype, monkeypatch: pytest.MonkeyPatch
) -> None:
    use("compiled", monkeypatch)
    x = torch.arange(-(2**15), 2**15).to(torch.int16).view(dtype)[None]
    zero = torch.zeros(x.shape[-1], dtype=dtype)
    found, true = fused(x, zero).double(), eager(x.double(), zero.double())
    nearest = true.to(dtype)
    assert torch.equal(torch.isnan(found), torch.isnan(nearest))
    info = torch.finfo(dtype)
    unit = info.eps * true.abs().clamp_min(info.tiny).log2().floor().exp2()
    # Half a unit is the rounding of the result; a sixth more, and 1e-6 in the tail of GELU, are for polynomials.
    error = ((found - true).abs() - 1e-6) / unit
    assert float(error[torch.isfinite(nearest)].max()) < 0.65


WRONG_OPERANDS = {
    "bias_of_another_length": (torch.zeros(2, 3), torch.zeros(2)),
    "bias_of_length_one": (torch.zeros(2, 3), torch.zeros(1)),
    "bias_of_two_dimensions": (torch.zeros(2, 3), torch.zeros(2, 3)),
    "scalar_bias": (torch.zeros(2, 3), torch.tensor(1.0)),
    "scalar_x": (torch.tensor(1.0), torch.zeros(1)),
    "two_dtypes": (torch.zeros(2, 3), torch.zeros(3, dtype=torch.float64)),
    "integers": (torch.zeros(2, 3, dtype=torch.int64), torch.zeros(3, dtype=torch.int64)),
}


@BOTH
@pytest.mark.parametrize("device", ["cpu", "meta"])
@pytest.mark.parametrize("operands", WRONG_OPERANDS)
def test_other_operands_are_refused_by_the_body_and_by_the_fake(
    fused: Operator, eager: Operator, device: str, operands: str
) -> None:
    x, bias = (tensor.to(device) for tensor in WRONG_OPERANDS[operands])
    with pytest.raises(KernelError, match="it expects"):
        fused(x, bias)


def test_an_unknown_approximation_is_refused() -> None:
    with pytest.raises(KernelError, match="approximate='quick'"):
        bias_gelu(torch.zeros(2, 3), torch.zeros(3), "quick")


@pytest.mark.parametrize("operator", [bias_gelu, bias_silu])
def test_a_compiler_takes_the_operator_as_one_node(operator: Operator) -> None:
    targets: list[str] = []

    def backend(gm: torch.fx.GraphModule, example_inputs: list[torch.Tensor]) -> Callable[..., object]:
        targets.extend(str(node.target) for node in gm.graph.nodes if node.op == "call_function")
        return gm.forward

    torch.compile(operator, backend=backend, fullgraph=True)(torch.randn(2, 3), torch.randn(3))
    assert len(targets) == 1
    assert targets[0].startswith("course_lib.bias_")
