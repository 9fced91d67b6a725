"""The fused operators under `torch.autocast`: the dtype and the values that the separate operators give."""

from collections.abc import Callable

import pytest
import torch
import torch.nn.functional as F

from course_lib.errors import KernelError
from course_lib.kernels import bias_gelu, bias_silu
from tests.course_lib.kernels.row_operators import ROW_OPERATORS, RowOperator

EACH = pytest.mark.parametrize("operator", ROW_OPERATORS, ids=lambda operator: operator.name)
HALF, FULL = torch.bfloat16, torch.float32


@pytest.fixture(autouse=True)
def _same_numbers_each_time() -> None:
    torch.manual_seed(0)


@pytest.mark.parametrize(("fused", "activation"), [(bias_gelu, F.gelu), (bias_silu, F.silu)])
@pytest.mark.parametrize("dtypes", [(HALF, FULL), (FULL, HALF), (HALF, HALF), (FULL, FULL)])
def test_bias_operators_give_the_dtype_and_the_values_of_eager(
    fused: Callable[..., torch.Tensor],
    activation: Callable[[torch.Tensor], torch.Tensor],
    dtypes: tuple[torch.dtype, torch.dtype],
) -> None:
    x, bias = torch.randn(3, 5, dtype=dtypes[0]), torch.randn(5, dtype=dtypes[1])
    with torch.autocast("cpu", HALF):
        torch.testing.assert_close(fused(x, bias), activation(x + bias), rtol=0, atol=0)


@EACH
@pytest.mark.parametrize(
    "dtypes",
    [(HALF, FULL, FULL, FULL), (HALF, HALF, HALF, FULL), (FULL, HALF, HALF, FULL), (HALF,) * 4, (FULL,) * 4],
    ids=str,
)
def test_row_operators_give_the_dtype_of_eager_and_its_values(
    operator: RowOperator, dtypes: tuple[torch.dtype, ...]
) -> None:
    first, row, column, norm = dtypes
    tensors = [tensor.detach() for tensor in operator.tensors(lambda: torch.randn(3, 64))]
    kinds = {"residual_layer_norm": (first, row, norm, norm)}.get(
        operator.name, (first, column, row, norm, norm)[: len(tensors)]
    )
    tensors = [tensor.to(kind) for tensor, kind in zip(tensors, kinds, strict=True)]
    with torch.autocast("cpu", HALF):
        fused, eager = operator.fused(tuple(tensors), 0.0, True), operator.eager(tuple(tensors), None)
    # Eager rounds the sum before it is normalised; the rule converts first.
    torch.testing.assert_close(fused, eager, rtol=0.02, atol=0.02)


@EACH
def test_gradients_come_back_in_the_dtype_of_each_tensor(operator: RowOperator) -> None:
    tensors = operator.tensors(lambda: torch.randn(3, 64))
    mixed = tuple(tensors[i].detach().to(HALF if i == 0 else FULL).requires_grad_() for i in range(len(tensors)))
    with torch.autocast("cpu", HALF):
        output = operator.fused(mixed, 0.5, True)
    for tensor, grad in zip(mixed, torch.autograd.grad(output.sum(), mixed), strict=True):
        assert grad.dtype == tensor.dtype


@EACH
def test_without_autocast_two_dtypes_are_still_refused(operator: RowOperator) -> None:
    tensors = operator.tensors(lambda: torch.randn(3, 5))
    with pytest.raises(KernelError, match="one floating-point dtype"):
        operator.fused((tensors[0].detach().to(HALF), *tensors[1:]), 0.0, True)


@EACH
def test_autocast_is_as_before_after_the_call(operator: RowOperator) -> None:
    with torch.autocast("cpu", HALF):
        operator.fused(operator.tensors(lambda: torch.randn(3, 5)), 0.0, True)
        assert torch.is_autocast_enabled("cpu")
        assert torch.mm(torch.ones(2, 2), torch.ones(2, 2)).dtype == HALF
