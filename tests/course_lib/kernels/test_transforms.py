"""The fused operators under `torch.vmap`: the values of a loop, and PyTorch's rules for what is random."""

import inspect
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
import torch.nn.functional as F

from course_lib import kernels
from course_lib.errors import KernelError
from course_lib.kernels import bias_gelu, bias_silu
from course_lib.kernels.dropout import dropout_factors
from course_lib.kernels.transforms import needs_float32
from tests.course_lib.kernels.bodies import use
from tests.course_lib.kernels.row_operators import EPS, ROW_OPERATORS, RowOperator

EACH = pytest.mark.parametrize("operator", ROW_OPERATORS, ids=lambda operator: operator.name)
RANDOM = pytest.mark.parametrize(
    "operator", [operator for operator in ROW_OPERATORS if operator.drops], ids=lambda operator: operator.name
)


@pytest.fixture(autouse=True)
def _same_numbers_each_time() -> None:
    torch.manual_seed(0)


@pytest.mark.parametrize("name", kernels.__all__)
def test_help_on_an_operator_shows_its_own_text_with_an_example(name: str) -> None:
    operator = getattr(kernels, name)
    text = inspect.getdoc(operator)
    assert text is not None
    assert text.startswith(("Return `", "Add ")), text[:80]
    assert f">>> {name}(" in text
    assert next(iter(inspect.signature(operator).parameters)) == "x"


@pytest.mark.parametrize("operator", [bias_gelu, bias_silu])
@pytest.mark.parametrize("in_dims", [(0, None), (1, None), (None, 0), (0, 0), (-1, 1)])
def test_bias_operators_map_over_rows_and_biases(
    operator: Callable[..., torch.Tensor], in_dims: tuple[int | None, int | None]
) -> None:
    x, bias = torch.randn(4, 3, 5), torch.randn(5)
    x = x if in_dims[0] is None else x.movedim(0, in_dims[0])
    bias = bias if in_dims[1] is None else torch.randn(4, 5).movedim(0, in_dims[1])
    expected = [
        operator(
            x if in_dims[0] is None else x.select(in_dims[0], i),
            bias if in_dims[1] is None else bias.select(in_dims[1], i),
        )
        for i in range(4)
    ]
    torch.testing.assert_close(torch.vmap(operator, in_dims)(x, bias), torch.stack(expected))


@EACH
@pytest.mark.parametrize("mapped", ["rows", "first_row", "columns", "all"])
def test_row_operators_map_over_any_of_their_tensors(operator: RowOperator, mapped: str) -> None:
    letters = {"rows": "r", "first_row": "r", "columns": "c", "all": "rc"}[mapped]
    dims = [0 if letter in letters else None for letter in operator.arguments]
    if mapped == "first_row":
        dims = [0] + [None] * (len(dims) - 1)
    batches = [operator.tensors(lambda: torch.randn(3, 5)) for _ in range(4)]
    batches = [
        tuple(own if dim == 0 else shared for own, shared, dim in zip(own_batch, batches[0], dims, strict=True))
        for own_batch in batches
    ]
    arguments = [
        torch.stack([batch[i] for batch in batches]) if dim == 0 else batches[0][i] for i, dim in enumerate(dims)
    ]
    mapped_call = torch.vmap(lambda *tensors: operator.fused(tensors, 0.5, False), tuple(dims))
    expected = torch.stack([operator.fused(batch, 0.5, False) for batch in batches])
    torch.testing.assert_close(mapped_call(*arguments), expected)


@RANDOM
def test_random_elements_are_the_same_different_or_refused_as_vmap_is_told(operator: RowOperator) -> None:
    x, *others = (tensor.detach() for tensor in operator.tensors(lambda: torch.randn(3, 32)))

    def call(x: torch.Tensor) -> torch.Tensor:
        return operator.fused((x, *others), 0.5, True)

    four = x.expand(4, 3, 32)
    same = torch.vmap(call, randomness="same")(four)
    assert all(torch.equal(element, same[0]) for element in same)
    different = torch.vmap(call, randomness="different")(four)
    assert not any(torch.equal(element, different[0]) for element in different[1:])
    with pytest.raises(RuntimeError, match="randomness"):
        torch.vmap(call, randomness="error")(four)


@RANDOM
def test_seeds_may_be_mapped_over(operator: RowOperator) -> None:
    tensors = tuple(tensor.detach() for tensor in operator.tensors(lambda: torch.randn(3, 32)))
    seeds = torch.tensor([[3], [4]])
    outputs = torch.vmap(lambda seed: operator.seeded(tensors, seed, 0.5))(seeds)
    for seed, output in zip(seeds, outputs, strict=True):
        expected = operator.eager(tensors, dropout_factors(seed, 0.5, tensors[0]))
        torch.testing.assert_close(output, expected)


@EACH
def test_many_gradients_at_once_are_those_of_one_after_the_other(operator: RowOperator) -> None:
    tensors = operator.tensors(lambda: torch.randn(2, 4), torch.float64)
    output = operator.seeded(tensors, torch.tensor([5]) if operator.drops else None, 0.3)
    grads = torch.randn(3, *output.shape, dtype=torch.float64)
    together = torch.autograd.grad(output, tensors, grads, retain_graph=True, is_grads_batched=True)
    for i, grad in enumerate(grads):
        alone = torch.autograd.grad(output, tensors, grad, retain_graph=True)
        for ours, theirs in zip(together, alone, strict=True):
            torch.testing.assert_close(ours[i], theirs)


def test_the_dimension_that_is_mapped_over_does_not_reach_the_statistics() -> None:
    operator = ROW_OPERATORS[0]
    x, residual, weight, bias = operator.tensors(lambda: torch.randn(6, 5))
    mapped = torch.vmap(lambda x, r: operator.fused((x, r, weight, bias), 0.0, False), in_dims=0)(x, residual)
    expected = torch.nn.functional.layer_norm(x + residual, (5,), weight, bias, EPS)
    torch.testing.assert_close(mapped, expected)


HALF, FULL = torch.bfloat16, torch.float32


@pytest.mark.parametrize(("fused", "activation"), [(bias_gelu, F.gelu), (bias_silu, F.silu)])
@pytest.mark.parametrize("dtypes", [(HALF, FULL), (FULL, HALF), (HALF, HALF), (FULL, FULL)])
def test_bias_operators_give_the_dtype_and_the_values_of_eager(
    fused: Callable[..., torch.Tensor],
    activation: Callable[[torch.Tensor], torch.Tensor],
    dtypes: tuple[torch.dtype, torch.dtype],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    use("eager", monkeypatch)  # which rounds as the separate operators do
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


@pytest.mark.parametrize("name", ["layer_norm", "rms_norm"])
def test_on_cuda_what_computes_in_float32_is_what_this_version_of_pytorch_lists(name: str) -> None:
    header = (Path(torch.__file__).parent / "include" / "ATen" / "autocast_mode.h").read_text(encoding="utf-8")
    listed = header.partition("define AT_FORALL_FP32(_)")[2].partition("\n\n")[0]

    assert "_(layer_norm)" in listed
    assert needs_float32(f"aten::{name}", "AutocastCUDA") == (f"_({name})" in listed)
    assert not needs_float32(f"aten::{name}", "AutocastCPU")
    assert not needs_float32("", "AutocastCUDA")


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
