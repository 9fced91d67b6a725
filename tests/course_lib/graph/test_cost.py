"""Costs counted by the library are those counted by hand."""

from collections.abc import Callable

import pytest
import torch
import torch.nn.functional as F
from torch._subclasses.fake_tensor import FakeTensorMode

from course_lib.graph import Cost, cost
from course_lib.kernels import bias_gelu, bias_silu

M, N = 6, 8
X = M * N * 4  # bytes of x, float32
B = N * 4  # bytes of the bias

Program = Callable[[torch.Tensor, torch.Tensor], object]


def _linear(x: torch.Tensor, bias: torch.Tensor) -> torch.Tensor:
    return F.linear(x, x, bias[:M])


def _accumulates(x: torch.Tensor, bias: torch.Tensor) -> torch.Tensor:
    return x.add_(bias)


def _into_out(x: torch.Tensor, bias: torch.Tensor) -> torch.Tensor:
    return torch.add(x, bias, out=torch.empty_like(x))


BY_HAND: dict[str, tuple[Program, Cost]] = {
    "silu_of_a_sum": (lambda x, b: F.silu(x + b), Cost(2, X + B + X, X + X)),
    "bias_silu": (bias_silu, Cost(1, X + B, X)),
    "bias_gelu": (bias_gelu, Cost(1, X + B, X)),
    "an_operand_twice": (lambda x, b: x * x, Cost(1, X, X)),
    "a_view_of_an_operand_twice": (lambda x, b: x * x.view(M, N), Cost(1, X, X)),
    "views_alone": (lambda x, b: x.t()[1:][None].expand(3, -1, -1).view(3, -1, M), Cost(0, 0, 0)),
    "shapes_alone": (lambda x, b: (x.shape[0], x.numel(), x.stride(), torch.empty_like(x)), Cost(0, 0, 0)),
    "an_expanded_operand": (lambda x, b: b.expand(M, N).exp(), Cost(1, B, M * N * 4)),
    "half_of_a_tensor": (lambda x, b: x[: M // 2].exp(), Cost(1, X // 2, X // 2)),
    "in_place": (_accumulates, Cost(1, X + B, X)),
    "overwriting": (lambda x, b: x.zero_(), Cost(1, 0, X)),
    "copying_into": (lambda x, b: x.copy_(b.expand(M, N)), Cost(1, B, X)),
    "into_out": (_into_out, Cost(1, X + B, X)),
    "a_copy_on_reshape": (lambda x, b: x.t().reshape(-1), Cost(1, X, X)),
    "a_sum": (lambda x, b: x.sum(), Cost(1, X, 4)),
    "two_results": (lambda x, b: x.max(dim=0), Cost(1, X, N * 4 + N * 8)),
    "a_list_of_operands": (lambda x, b: torch.cat([x, x, b[None]]), Cost(1, X + B, 2 * X + B)),
    "another_dtype": (lambda x, b: x.double(), Cost(1, X, 2 * X)),
    "a_linear_layer": (_linear, Cost(1, X + M * 4, M * M * 4)),
    "a_copy_for_a_graph": (lambda x, b: torch.ops.aten.lift_fresh_copy(x), Cost(1, X, X)),
    "a_copy_and_a_fill": (lambda x, b: x.masked_fill(x > 0, 1.0), Cost(3, 3 * X + M * N, M * N + 2 * X)),
    "absolute_values_and_a_comparison": (lambda x, b: x.isinf(), Cost(2, 2 * X, X + M * N)),
    "terms_of_a_loss_and_their_mean": (lambda x, b: F.mse_loss(x, b.expand(M, N)), Cost(2, X + B + X, X + 4)),
    "terms_of_a_loss": (lambda x, b: F.smooth_l1_loss(x, b.expand(M, N), reduction="none"), Cost(1, X + B, X)),
    "nothing": (lambda x, b: None, Cost(0, 0, 0)),
}


def _inputs() -> tuple[torch.Tensor, torch.Tensor]:
    return torch.randn(M, N), torch.randn(N)


@pytest.mark.parametrize("case", BY_HAND)
def test_costs_are_those_counted_by_hand(case: str) -> None:
    program, expected = BY_HAND[case]
    assert cost(program, _inputs()) == expected


def test_a_gather_is_charged_for_the_rows_it_reads() -> None:
    rows = torch.tensor([0, 1])
    counted = cost(lambda x, rows: F.embedding(rows, x), (_inputs()[0], rows))
    assert counted == Cost(1, 2 * 8 + 2 * B, 2 * B)


@pytest.mark.parametrize("case", ["silu_of_a_sum", "bias_silu", "an_expanded_operand", "a_copy_and_a_fill"])
def test_fake_tensors_cost_the_same_as_real_ones(case: str) -> None:
    program, expected = BY_HAND[case]
    with FakeTensorMode():
        assert cost(program, (torch.empty(M, N), torch.empty(N))) == expected


@pytest.mark.parametrize("context", [torch.no_grad, torch.inference_mode, torch.enable_grad])
def test_the_mode_around_the_program_does_not_change_its_cost(context: Callable[[], torch.no_grad]) -> None:
    x, weight = torch.randn(2, M, N), torch.randn(N, N, requires_grad=True)
    with context():
        counted = cost(lambda x, w: F.layer_norm(F.linear(x, w), (N,)), (x, weight))
    assert counted.operators == ("mm", "native_layer_norm")


def test_backward_is_counted_too() -> None:
    x, bias = (tensor.requires_grad_() for tensor in _inputs())
    counted = cost(lambda x, b: bias_silu(x, b).backward(torch.ones(M, N)), (x, bias))
    # forward, the gradient to begin with, and backward
    assert counted.operators == ("course_lib.bias_silu", "ones", "course_lib.bias_silu_backward")


def test_bytes_moved_are_bytes_read_and_written() -> None:
    assert Cost(1, 3, 4).bytes_moved == 7


def test_an_empty_tensor_is_a_launch_without_bytes() -> None:
    assert cost(bias_silu, (torch.zeros(0, N), torch.zeros(N))) == Cost(1, B, 0)


def test_a_cost_prints_as_one_sentence() -> None:
    counted = cost(lambda x: torch.relu(x + 1), (torch.zeros(1000),))
    assert str(counted).startswith("2 launches, 16,000 bytes moved (8,000 read, 8,000 written), at least 8,000 by one")


def test_an_operator_that_launches_several_kernels_is_counted_as_these() -> None:
    x = torch.ones(4, 5, requires_grad=True)
    forward = cost(lambda x: torch.ops.aten.native_dropout.default(x, 0.5, True), (x,))
    assert forward.operators == ("bernoulli_", "mul", "mul_")
    whole = cost(lambda x: torch.ops.aten.native_dropout.default(x, 0.5, True)[0].sum().backward(), (x,))
    assert whole.operators[-2:] == ("mul", "mul")
    unchanged = cost(lambda x: torch.ops.aten.native_dropout.default(x, 0.5, False), (x,))
    assert unchanged.operators == ("clone", "fill_")


def test_a_step_of_a_convolution_of_size_one_costs_what_that_of_a_linear_layer_does() -> None:
    x, weight, bias = (torch.ones(*shape, requires_grad=True) for shape in ((6, 8), (4, 8), (4,)))
    linear = cost(lambda *given: F.linear(*given).backward(torch.ones(6, 4)), (x, weight, bias))
    image, kernel = x[:, :, None, None], weight[:, :, None, None]
    convolution = cost(
        lambda *given: F.conv2d(*given).backward(torch.ones(6, 4, 1, 1)),
        [each.detach().requires_grad_() for each in (image, kernel, bias)],
    )
    assert linear.operators == ("addmm", "ones", "mm", "mm", "sum")
    assert convolution.operators == ("convolution", "ones", "convolution_backward", "convolution_backward", "sum")
    assert convolution.flops == linear.flops
    assert convolution.bytes_moved == linear.bytes_moved + 2 * 4  # of two operands only the shape is read


def test_a_convolution_is_charged_for_the_gradients_that_are_wanted() -> None:
    x, kernel = torch.ones(2, 3, 8), torch.ones(5, 3, 3, requires_grad=True)
    step = cost(lambda x, kernel: F.conv1d(x, kernel).backward(torch.ones(2, 5, 6)), (x, kernel))
    assert step.operators == ("convolution", "ones", "convolution_backward")


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16], ids=str)
def test_dropout_gives_the_same_numbers_while_it_is_counted(dtype: torch.dtype) -> None:
    x, results = torch.randn(64, 5, dtype=dtype), []

    def dropped(x: torch.Tensor) -> None:
        torch.manual_seed(0)
        results.append(torch.ops.aten.native_dropout.default(x, 0.3, True)[0])

    dropped(x)
    cost(dropped, (x,))
    assert torch.equal(*results)
