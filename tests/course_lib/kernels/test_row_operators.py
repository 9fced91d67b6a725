"""The operators that normalise rows: eager's values, dropout by a seed, and all that PyTorch asks of an operator."""

from collections.abc import Callable

import pytest
import torch
import torch.nn.functional as F
from torch.utils.checkpoint import checkpoint

from course_lib.errors import KernelError
from course_lib.graph import cost
from course_lib.kernels.dropout import dropout_factors
from tests.course_lib.kernels.bodies import BODIES, EACH_BODY, compare, use
from tests.course_lib.kernels.row_operators import EPS, LAYOUTS, ROW_OPERATORS, RowOperator, Tensors
from tests.drawn import some

EACH = pytest.mark.parametrize("operator", ROW_OPERATORS, ids=lambda operator: operator.name)
RANDOM = pytest.mark.parametrize(
    "operator", [operator for operator in ROW_OPERATORS if operator.drops], ids=lambda operator: operator.name
)
DRAWN_BODY = pytest.mark.parametrize("body", some(BODIES, 1, name="bodies of opcheck"))
SEED = torch.tensor([7])


@pytest.fixture(autouse=True)
def _same_numbers_each_time() -> None:
    torch.manual_seed(0)


def _values_and_gradients(function: Callable[[Tensors], torch.Tensor], tensors: Tensors) -> list[torch.Tensor]:
    leaves = tuple(tensor.detach().requires_grad_() for tensor in tensors)
    output = function(leaves)
    grad = torch.linspace(-1, 1, output.numel(), dtype=output.dtype).view(output.shape)
    return [output, *torch.autograd.grad(output, leaves, grad)]


@EACH
@EACH_BODY
@pytest.mark.parametrize("layout", LAYOUTS)
def test_values_and_gradients_are_those_of_eager(
    operator: RowOperator, layout: str, body: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    use(body, monkeypatch)
    for dtype in (torch.float64, torch.float32, torch.bfloat16, torch.float16):
        for p in operator.shares(0.0, 0.4, 1.0):
            _compare_with_eager(operator, operator.tensors(LAYOUTS[layout], dtype), p, exact=body == "eager")


def _compare_with_eager(operator: RowOperator, tensors: Tensors, p: float, *, exact: bool) -> None:
    seed = SEED if operator.drops and p > 0 else None
    factors = None if seed is None else dropout_factors(seed, p, tensors[0])
    in_fp64 = None if seed is None else dropout_factors(seed, p, tensors[0].double())
    fused = _values_and_gradients(lambda tensors: operator.seeded(tensors, seed, p), tensors)
    eager = _values_and_gradients(lambda tensors: operator.eager(tensors, factors), tensors)
    truth = _values_and_gradients(lambda t: operator.eager(t, in_fp64), tuple(one.double() for one in tensors))
    # The backward pass of RMSNorm is a formula of ours; that of LayerNorm is PyTorch's own operator.
    exact_to = len(fused) if "rms" not in operator.name else 1
    magnified = EPS**-0.5 if tensors[0].shape[-1] == 1 else 1.0  # rows of one element have no deviation
    compare(fused[:exact_to], eager[:exact_to], truth[:exact_to], exact=exact, magnified=magnified)
    compare(fused[exact_to:], eager[exact_to:], truth[exact_to:], exact=False, magnified=magnified)
    assert fused[0].is_contiguous()


@EACH
@EACH_BODY
def test_gradients_are_right_to_second_order(operator: RowOperator, body: str, monkeypatch: pytest.MonkeyPatch) -> None:
    use(body, monkeypatch)
    for p in operator.shares(0.0, 0.4, 1.0):
        tensors = operator.tensors(lambda: torch.randn(3, 4), torch.float64)
        seed = SEED if operator.drops and p > 0 else None
        for check in (torch.autograd.gradcheck, torch.autograd.gradgradcheck):
            assert check(lambda *tensors: operator.seeded(tensors, seed, p), tensors), p  # noqa: B023


@EACH
@DRAWN_BODY
def test_opcheck_finds_nothing_to_complain_about(
    operator: RowOperator, body: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    use(body, monkeypatch)
    public = getattr(torch.ops.course_lib, operator.name).default
    for layout in some(("matrix", "permuted", "expanded", "empty_batch"), 2, name=f"layouts of {operator.name}"):
        tensors = operator.tensors(LAYOUTS[layout])
        torch.library.opcheck(public, (*tensors, 0.4, False, EPS) if operator.drops else (*tensors, EPS))
        if operator.drops:
            seeded = getattr(torch.ops.course_lib, operator.name + "_seeded").default
            torch.library.opcheck(seeded, (*tensors, SEED, 0.4, EPS))
            torch.library.opcheck(seeded, (*tensors, None, 0.0, EPS))


@EACH
@DRAWN_BODY
def test_opcheck_of_the_backward_operators_finds_nothing_either(
    operator: RowOperator, body: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    use(body, monkeypatch)
    backward = getattr(torch.ops.course_lib, operator.name + "_backward").default
    for layout in some(("matrix", "permuted", "empty_batch"), 2, name=f"layouts of gradients of {operator.name}"):
        tensors = [tensor.detach() for tensor in operator.tensors(LAYOUTS[layout])]
        grad = torch.randn(tensors[0].shape)
        for dropout in ((SEED, 0.4), (None, 0.0)) if operator.drops else ((),):
            torch.library.opcheck(backward, (grad, *tensors, *dropout, EPS))


@RANDOM
def test_dropout_is_repeated_by_the_seed_of_the_process_and_differs_between_calls(operator: RowOperator) -> None:
    tensors = operator.tensors(lambda: torch.randn(4, 32))
    torch.manual_seed(1)
    first, second = operator.fused(tensors, 0.5, True), operator.fused(tensors, 0.5, True)
    torch.manual_seed(1)
    assert torch.equal(operator.fused(tensors, 0.5, True), first)
    assert not torch.equal(first, second)


@RANDOM
def test_without_training_or_probability_nothing_is_random_and_no_random_number_is_used(operator: RowOperator) -> None:
    tensors = operator.tensors(lambda: torch.randn(4, 32))
    state = torch.get_rng_state()
    expected = operator.eager(tensors, None)
    for p, training in ((0.0, True), (0.5, False), (1.0, False)):
        torch.testing.assert_close(operator.fused(tensors, p, training), expected)
    assert torch.equal(torch.get_rng_state(), state)


@RANDOM
def test_with_probability_one_only_the_residual_is_left(operator: RowOperator) -> None:
    tensors = operator.tensors(lambda: torch.randn(4, 32))
    output = operator.fused(tensors, 1.0, True)
    torch.testing.assert_close(output, operator.eager(tensors, torch.zeros(4, 32)))
    grad_x, grad_operand = torch.autograd.grad(output.sum(), tensors[:2])
    assert not grad_x.any()
    assert not grad_operand.any()


@EACH
def test_statistics_of_half_precision_are_taken_in_float32(operator: RowOperator) -> None:
    tensors = operator.tensors(lambda: torch.randn(8, 4096) + 100, torch.bfloat16)
    exact = operator.eager(tuple(tensor.double() for tensor in tensors), None)
    eager_error = (operator.eager(tensors, None).double() - exact).abs().max()
    error = (operator.seeded(tensors, None, 0.0).double() - exact).abs().max()
    assert error <= 2 * eager_error


@EACH
def test_the_operator_is_one_launch_that_moves_no_more_than_inputs_and_output(operator: RowOperator) -> None:
    tensors = tuple(tensor.detach() for tensor in operator.tensors(lambda: torch.randn(8, 16)))
    spent = cost(lambda *tensors: operator.fused(tensors, 0.0, True), tensors)
    assert spent.launches == 1
    assert spent.bytes_read == sum(tensor.numel() for tensor in tensors) * 4
    assert spent.bytes_written == 8 * 16 * 4


@RANDOM
def test_in_training_a_seed_of_eight_bytes_is_drawn_besides(operator: RowOperator) -> None:
    tensors = tuple(tensor.detach() for tensor in operator.tensors(lambda: torch.randn(8, 16)))
    spent = cost(lambda *tensors: operator.fused(tensors, 0.5, True), tensors)
    assert spent.operators == ("randint", f"course_lib.{operator.name}_seeded")
    assert spent.bytes_written == 8 * 16 * 4 + 8


@EACH
def test_the_backward_pass_is_one_launch_and_saves_no_mask(operator: RowOperator) -> None:
    tensors = operator.tensors(lambda: torch.randn(8, 16))
    saved: list[torch.Tensor] = []

    def keep(tensor: torch.Tensor) -> torch.Tensor:
        saved.append(tensor)
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor):
        output = operator.fused(tensors, 0.5, True)
    inputs = {tensor.data_ptr() for tensor in tensors}
    assert sum(tensor.nbytes for tensor in saved if tensor.data_ptr() not in inputs) == (8 if operator.drops else 0)
    spent = cost(lambda grad: torch.autograd.grad(output, tensors, grad), (torch.ones_like(output),))
    assert spent.operators == (f"course_lib.{operator.name}_backward",)


@EACH
def test_activation_checkpointing_gives_the_same_gradients(operator: RowOperator) -> None:
    tensors = operator.tensors(lambda: torch.randn(5, 8))

    def run() -> torch.Tensor:
        return operator.fused(tensors, 0.5, True)

    gradients = []
    for call in (run, lambda: checkpoint(run, use_reentrant=False)):
        torch.manual_seed(0)
        gradients.append(torch.autograd.grad(call().square().sum(), tensors))
    assert all(map(torch.equal, *gradients))


@EACH
def test_the_inputs_stay_as_they_were_and_the_output_is_new(operator: RowOperator) -> None:
    tensors = operator.tensors(lambda: torch.randn(3, 5))
    kept = [tensor.clone() for tensor in tensors]
    with torch.no_grad():
        operator.fused(tensors, 0.5, True).add_(1)
    for tensor, before in zip(tensors, kept, strict=True):
        assert torch.equal(tensor, before)


@EACH
def test_infinity_and_nan_spread_as_they_do_in_eager(operator: RowOperator) -> None:
    tensors = operator.tensors(lambda: torch.randn(3, 5))
    with torch.no_grad():
        tensors[0][0, 1], tensors[0][1, 2] = float("inf"), float("nan")
    torch.testing.assert_close(operator.fused(tensors, 0.0, True), operator.eager(tensors, None), equal_nan=True)


ROW, COLUMN = torch.zeros(2, 3), torch.zeros(3)
WRONG: dict[str, tuple[str, Callable[[torch.Tensor], torch.Tensor]]] = {
    "residual_to_broadcast": ("last_row", lambda row: row[:1]),
    "column_of_another_length": ("column", lambda column: column[:2]),
    "column_of_two_dimensions": ("column", lambda column: column.expand(2, 3)),
    "two_dtypes": ("column", lambda column: column.double()),
    "integers": ("all", lambda tensor: tensor.long()),
    "scalars": ("all", lambda tensor: tensor.sum()),
    "rows_of_no_elements": ("all", lambda tensor: tensor[..., :0]),
}


@EACH
@pytest.mark.parametrize("wrong", WRONG)
def test_other_operands_are_refused_by_the_body_and_by_the_fake(operator: RowOperator, wrong: str) -> None:
    which, spoil = WRONG[wrong]
    last = {"last_row": operator.arguments.rindex("r"), "column": operator.arguments.rindex("c"), "all": -1}[which]
    for device in ("cpu", "meta"):
        tensors = [(ROW if letter == "r" else COLUMN).to(device) for letter in operator.arguments]
        spoilt = [spoil(tensor) if last in (-1, i) else tensor for i, tensor in enumerate(tensors)]
        with pytest.raises(KernelError, match="it expects"):
            operator.fused(tuple(spoilt), 0.0, True)


@RANDOM
@pytest.mark.parametrize("p", [-0.1, 1.5, float("nan")])
def test_what_is_no_probability_is_refused(operator: RowOperator, p: float) -> None:
    with pytest.raises(KernelError, match="between 0 and 1"):
        operator.fused(operator.tensors(lambda: torch.randn(2, 3)), p, False)


def test_residual_and_dropout_together_are_what_the_layers_of_a_transformer_compute() -> None:
    torch.manual_seed(0)
    linear, norm = torch.nn.Linear(6, 5), torch.nn.LayerNorm(5)
    hidden, residual = torch.randn(2, 3, 6), torch.randn(2, 3, 5)
    fused = torch.ops.course_lib.bias_dropout_residual_layer_norm(
        F.linear(hidden, linear.weight), linear.bias, residual, norm.weight, norm.bias, 0.1, False, norm.eps
    )
    torch.testing.assert_close(fused, norm(residual + linear(hidden)))
