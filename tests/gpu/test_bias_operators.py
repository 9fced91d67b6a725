"""The fused operators on a GPU: the same numbers and gradients as double precision on the CPU, within a few roundings.

On a CPU, in a dry run of the GPU check, only small sizes: Triton's interpreter takes its time.
"""

import os

import torch
import torch.nn.functional as F

from course_lib.kernels import bias_gelu, bias_silu

DEVICE = os.environ.get("GPU_CHECK_DEVICE", "cuda")
OPERATORS = {bias_gelu: F.gelu, bias_silu: F.silu}
# Absolute and relative error: sixteen roundings of the dtype, because a sum of size eight is rounded at its own size.
TOLERANCE = {dtype: 16 * torch.finfo(dtype).eps for dtype in (torch.float32, torch.float16, torch.bfloat16)}
LARGE = (129, 768) if DEVICE == "cuda" else (5, 96)
SHAPES = ((1, 1), (3, 127), LARGE, (2, 5, 64), (0, 8))


def operands(shape: tuple[int, ...], dtype: torch.dtype) -> tuple[torch.Tensor, torch.Tensor]:
    """Return x and a bias on the device, rounded to `dtype`, that ask for gradients."""
    generator = torch.Generator().manual_seed(len(shape) * 1000 + shape[-1])
    x, bias = torch.randn(shape, generator=generator), torch.randn(shape[-1], generator=generator)
    return x.to(DEVICE, dtype).requires_grad_(), bias.to(DEVICE, dtype).requires_grad_()


def in_double(tensor: torch.Tensor) -> torch.Tensor:
    """Return a double-precision copy on the CPU that asks for gradients."""
    return tensor.detach().to("cpu", torch.float64).requires_grad_()


def test_values_agree_with_double_precision_on_the_cpu():
    for operator, activation in OPERATORS.items():
        for dtype, tolerance in TOLERANCE.items():
            for shape in SHAPES:
                x, bias = operands(shape, dtype)
                expected = activation(in_double(x) + in_double(bias))
                torch.testing.assert_close(in_double(operator(x, bias)), expected, rtol=tolerance, atol=tolerance)


def test_gradients_agree_with_double_precision_on_the_cpu():
    for operator, activation in OPERATORS.items():
        x, bias = operands(LARGE, torch.float32)
        exact_x, exact_bias = in_double(x), in_double(bias)
        operator(x, bias).sum().backward()
        activation(exact_x + exact_bias).sum().backward()
        torch.testing.assert_close(in_double(x.grad), exact_x.grad, rtol=1e-5, atol=1e-5)
        torch.testing.assert_close(in_double(bias.grad), exact_bias.grad, rtol=1e-4, atol=1e-3)


def test_the_result_stays_on_the_device_and_is_new_memory():
    for operator in OPERATORS:
        x, bias = operands((3, 127), torch.float32)
        result = operator(x, bias)
        assert result.device.type == DEVICE
        assert result.data_ptr() != x.data_ptr()


def test_a_transposed_input_gives_the_same_values():
    for operator, activation in OPERATORS.items():
        x, _ = operands((127, 3), torch.float32)
        bias = operands((1, 127), torch.float32)[1]
        expected = activation(in_double(x).T + in_double(bias))
        tolerance = TOLERANCE[torch.float32]
        torch.testing.assert_close(in_double(operator(x.T, bias)), expected, rtol=tolerance, atol=tolerance)
