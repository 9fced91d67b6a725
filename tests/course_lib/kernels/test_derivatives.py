"""Every derivative of a fused operator is that of its formula: forward mode, `torch.func`, and compositions."""

from collections.abc import Callable

import pytest
import torch
import torch.nn.functional as F
from torch.autograd import forward_ad

from course_lib.errors import KernelError
from course_lib.fusion import fuse
from course_lib.kernels import bias_gelu, bias_silu
from course_lib.kernels.dropout import dropout_factors
from tests.course_lib.kernels.row_operators import EPS, ROW_OPERATORS

Tensor = torch.Tensor
Tensors = tuple[Tensor, ...]
Operator = Callable[[Tensors], Tensor]
ROWS, COLUMNS = 3, 5


def _normal(*shape: int) -> Tensor:
    return torch.randn(shape, dtype=torch.float64, generator=torch.Generator().manual_seed(sum(shape)))


def _cases() -> dict[str, tuple[Tensors, Operator, Operator]]:
    """Return, for each fused operator, its tensors, the operator, and its formula."""
    pair = (_normal(ROWS, COLUMNS), _normal(COLUMNS))
    found: dict[str, tuple[Tensors, Operator, Operator]] = {
        "bias_gelu": (pair, lambda t: bias_gelu(*t), lambda t: F.gelu(t[0] + t[1])),
        "bias_gelu by tanh": (
            pair,
            lambda t: bias_gelu(*t, "tanh"),
            lambda t: F.gelu(t[0] + t[1], approximate="tanh"),
        ),
        "bias_silu": (pair, lambda t: bias_silu(*t), lambda t: (t[0] + t[1]) * torch.sigmoid(t[0] + t[1])),
    }
    seed = torch.tensor([7])
    for one in ROW_OPERATORS:
        tensors = tuple(_normal(ROWS, COLUMNS) + i if kind == "r" else _normal(COLUMNS) - i
                        for i, kind in enumerate(one.arguments))  # fmt: skip
        factors = dropout_factors(seed, 0.3, tensors[0])
        found[one.name] = (tensors, lambda t, one=one: one.seeded(t, None, 0.0), lambda t, one=one: one.eager(t, None))  # type: ignore[misc]  # bound now
        if one.drops:
            found[f"{one.name} with dropout"] = (
                tensors,
                lambda t, one=one: one.seeded(t, seed, 0.3),  # type: ignore[misc]  # bound now
                lambda t, one=one, factors=factors: one.eager(t, factors),  # type: ignore[misc]  # bound now
            )
    return found


CASES = _cases()
EACH = pytest.mark.parametrize("case", CASES.values(), ids=CASES)


def _weighted(operator: Operator) -> Callable[..., Tensor]:
    return lambda *tensors: (operator(tensors) * torch.linspace(-1, 2, ROWS * COLUMNS).reshape(ROWS, COLUMNS)).sum()


def _dual(operator: Operator, tensors: Tensors) -> object:
    with forward_ad.dual_level():
        result = operator(tuple(forward_ad.make_dual(one, one.cos()) for one in tensors))
        return forward_ad.unpack_dual(result).tangent


def _through_backward(operator: Operator, tensors: Tensors) -> object:
    """Return the tangent of a gradient, where only the gradient of the result has a tangent."""
    leaves = tuple(one.clone().requires_grad_() for one in tensors)
    result = operator(leaves)
    with forward_ad.dual_level():
        grads = torch.autograd.grad(result, leaves, forward_ad.make_dual(result.detach().sin(), result.detach().cos()))
        return [forward_ad.unpack_dual(one).tangent.clone() for one in grads]


def _all(tensors: Tensors) -> tuple[int, ...]:
    return tuple(range(len(tensors)))


TRANSFORMS: dict[str, Callable[[Operator, Tensors], object]] = {
    "dual numbers": _dual,
    "a tangent through backward": _through_backward,
    "jvp": lambda f, t: torch.func.jvp(lambda *given: f(given), t, tuple(one.cos() for one in t)),
    "jacfwd": lambda f, t: torch.func.jacfwd(lambda *given: f(given), _all(t))(*t),
    "grad": lambda f, t: torch.func.grad(_weighted(f), _all(t))(*t),
    "vjp": lambda f, t: torch.func.vjp(lambda *given: f(given), *t)[1](torch.ones_like(t[0])),
    "jacrev": lambda f, t: torch.func.jacrev(lambda *given: f(given), _all(t))(*t),
    "hessian": lambda f, t: torch.func.hessian(_weighted(f))(*t),
    "grad of grad": lambda f, t: torch.func.grad(lambda *g: torch.func.grad(_weighted(f))(*g).square().sum())(*t),
    "vmap of grad": lambda f, t: torch.vmap(torch.func.grad(_weighted(f), _all(t)))(
        *(torch.stack([one, one.sin()]) for one in t)
    ),
    "grad of vmap": lambda f, t: torch.func.grad(lambda one: torch.vmap(_weighted(f))(one, *(
        torch.stack([other, other.sin()]) for other in t[1:])).sum())(torch.stack([t[0], t[0].sin()])),
}  # fmt: skip


@EACH
@pytest.mark.parametrize("transform", TRANSFORMS.values(), ids=TRANSFORMS)
def test_each_derivative_is_that_of_the_formula(
    case: tuple[Tensors, Operator, Operator], transform: Callable[[Operator, Tensors], object]
) -> None:
    tensors, fused, formula = case
    expected = transform(formula, tensors)
    assert any(one.abs().max() > 0.01 for one in torch.utils._pytree.tree_leaves(expected))
    torch.testing.assert_close(transform(fused, tensors), expected)


def test_a_fused_program_has_the_derivatives_of_the_program() -> None:
    norm = torch.nn.LayerNorm(COLUMNS).double()

    class Program(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.norm = norm

        def forward(self, x: Tensor, b: Tensor) -> Tensor:
            result: Tensor = self.norm(F.gelu(x + b) + x)
            return result

    x, b = _normal(ROWS, COLUMNS), _normal(COLUMNS)
    result = fuse(Program(), (x, b))
    assert result.num_matches == 2
    for transform in (torch.func.jacfwd, torch.func.jacrev, torch.func.hessian):
        torch.testing.assert_close(transform(result.graph_module)(x, b), transform(Program())(x, b))


def test_what_the_operator_refuses_is_refused_in_forward_mode() -> None:
    x = _normal(ROWS, COLUMNS)
    with pytest.raises(KernelError, match="bias"):
        torch.func.jvp(lambda t: bias_gelu(t, t), (x,), (x,))
    tensors = (x, x, x[0], x[:2, 0])
    with pytest.raises(KernelError, match="expects"):
        torch.func.grad(lambda t: torch.ops.course_lib.residual_layer_norm(t, *tensors[1:], EPS).sum())(x)


def test_autograd_alone_still_runs_the_operator() -> None:
    def names(result: Tensor) -> str:
        return type(result.grad_fn).__name__

    x, b = _normal(ROWS, COLUMNS).requires_grad_(), _normal(COLUMNS)
    assert "bias_gelu" in names(bias_gelu(x, b))
    with forward_ad.dual_level():
        assert "bias_gelu" in names(bias_gelu(x, b))


def test_the_private_names_of_pytorch_have_not_moved() -> None:
    assert callable(torch._library.autograd.make_autograd_impl), "see formula_derivatives.py: custom_op has a new rule"
    assert callable(torch._C._functorch.is_gradtrackingtensor), (
        "see formula_derivatives.py: torch.func is recognised by it"
    )
    assert forward_ad._current_level == -1, "see formula_derivatives.py: forward mode is recognised by it"
    assert hasattr(bias_gelu, "_opoverload"), "see formula_derivatives.py: a custom operator holds its overload"
