"""The operators that normalise rows on a GPU: double precision's numbers within a few roundings, and a mask by seed.

On a CPU, in a dry run of the GPU check, only small sizes: Triton's interpreter takes its time.
"""

import os
import warnings

import torch
import torch.nn.functional as F

import course_lib.kernels  # noqa: F401  # registers the operators
from course_lib.kernels.dropout import dropout_factors

DEVICE = os.environ.get("GPU_CHECK_DEVICE", "cuda")
EPS = 1e-5
# One letter a tensor: r for one of shape (..., N), c for one of shape (N,).
OPERATORS = {
    "residual_layer_norm": "rrcc",
    "bias_dropout_residual_layer_norm": "rcrcc",
    "scale_dropout_residual_rms_norm": "rcrc",
}
# Absolute and relative error: thirty-two roundings of the dtype, since rows are normalised to size one and then scaled.
TOLERANCE = {dtype: 32 * torch.finfo(dtype).eps for dtype in (torch.float32, torch.float16, torch.bfloat16)}
LARGE = (129, 768) if DEVICE == "cuda" else (5, 96)
SHAPES = ((1, 2), (3, 127), (2, 5, 64), (0, 8), LARGE, *(((1025, 4), (3, 8192)) if DEVICE == "cuda" else ()))


def operands(name: str, shape: tuple[int, ...], dtype: torch.dtype) -> list[torch.Tensor]:
    """Return tensors on the device, rounded to `dtype`, that ask for gradients."""
    generator = torch.Generator().manual_seed(len(shape) * 1000 + shape[-1])
    shapes = [shape if letter == "r" else shape[-1:] for letter in OPERATORS[name]]
    return [torch.randn(one, generator=generator).to(DEVICE, dtype).requires_grad_() for one in shapes]


def call(name: str, tensors: list[torch.Tensor], seed: int | None, p: float) -> torch.Tensor:
    """Call the operator that is a function of its inputs alone."""
    if name == "residual_layer_norm":
        return torch.ops.course_lib.residual_layer_norm(*tensors, EPS)
    on_device = None if seed is None else torch.tensor([seed], device=DEVICE)
    return getattr(torch.ops.course_lib, f"{name}_seeded")(*tensors, on_device, p, EPS)


def formula(name: str, tensors: list[torch.Tensor], seed: int | None, p: float) -> torch.Tensor:
    """Compute the same by PyTorch's operators, on whatever device and in whatever precision the tensors have."""
    if name == "residual_layer_norm":
        x, residual, weight, bias = tensors
        return F.layer_norm(x + residual, weight.shape, weight, bias, EPS)
    x, vector, residual, weight, *bias = tensors
    dropped = x * vector if "scale" in name else x + vector
    if seed is not None:
        dropped = dropped * dropout_factors(torch.tensor([seed], device=x.device), p, x)
    if bias:
        return F.layer_norm(residual + dropped, weight.shape, weight, bias[0], EPS)
    return F.rms_norm(residual + dropped, weight.shape, weight, EPS)


def in_double(tensors: list[torch.Tensor]) -> list[torch.Tensor]:
    """Return double-precision copies on the CPU that ask for gradients."""
    return [tensor.detach().to("cpu", torch.float64).requires_grad_() for tensor in tensors]


def assert_agree(name: str, shape: tuple[int, ...], dtype: torch.dtype, seed: int | None, p: float) -> None:
    """Compare values and gradients with double precision on the CPU, and the error with that of separate operators.

    Some rows amplify rounding (four nearly equal elements are blown up to size one), for the separate operators alike.
    """
    tensors = operands(name, shape, dtype)
    results = []
    for function, inputs in ((formula, in_double(tensors)), (formula, tensors), (call, tensors)):
        output = function(name, inputs, seed, p)
        grad = torch.linspace(-1, 1, output.numel()).view(output.shape).to(dtype).to(output.device, output.dtype)
        found = [output.detach(), *torch.autograd.grad(output, inputs, grad)]
        results.append([tensor.cpu().double() for tensor in found])
    for exact, separate, fused in zip(*results, strict=True):
        assert fused.shape == exact.shape
        if exact.numel():
            room = TOLERANCE[dtype] * max(1.0, float(exact.abs().amax()))
            error, of_separate = float((fused - exact).abs().amax()), float((separate - exact).abs().amax())
            assert error <= 2 * of_separate + room, f"{name} {shape} {dtype}: {error:.2g}, separate {of_separate:.2g}"


def test_values_and_gradients_agree_with_double_precision_on_the_cpu():
    for name in OPERATORS:
        for dtype in TOLERANCE:
            for shape in SHAPES:
                assert_agree(name, shape, dtype, None, 0.0)


def test_dropout_has_the_mask_of_the_cpu_for_the_same_seed_forward_and_backward():
    for name in OPERATORS:
        for shape in SHAPES:
            for seed in (0, 2**31 + 5, 2**62 + 9):
                assert_agree(name, shape, torch.float32, seed, 0.3)
        assert_agree(name, LARGE, torch.bfloat16, 4, 0.1)
        assert_agree(name, LARGE, torch.float32, 4, 1.0)


def test_any_strides_are_taken():
    for name in OPERATORS:
        tensors = operands(name, (6, 127), torch.float32)
        exact = in_double(tensors)
        wide = torch.randn(6, 254, device=DEVICE)
        for x in (wide[:, ::2], wide[:, :127], wide[:1, :127].expand(6, 127), torch.randn(127, 6, device=DEVICE).T):
            changed = [x.detach().requires_grad_(), *tensors[1:]]
            expected = formula(name, [*in_double([x]), *exact[1:]], 3, 0.2)
            torch.testing.assert_close(call(name, changed, 3, 0.2).cpu().double(), expected, rtol=1e-5, atol=1e-5)


def test_two_calls_drop_different_elements_and_the_seed_of_the_process_repeats_them():
    for name in ("bias_dropout_residual_layer_norm", "scale_dropout_residual_rms_norm"):
        tensors = [tensor.detach() for tensor in operands(name, LARGE, torch.float32)]
        operator = getattr(torch.ops.course_lib, name)
        torch.manual_seed(1)
        first, second = operator(*tensors, 0.5, True, EPS), operator(*tensors, 0.5, True, EPS)
        torch.manual_seed(1)
        assert torch.equal(operator(*tensors, 0.5, True, EPS), first)
        assert not torch.equal(first, second)


def test_each_replay_of_a_cuda_graph_drops_other_elements():
    if DEVICE != "cuda":
        return  # there are no graphs to replay
    name = "bias_dropout_residual_layer_norm"
    tensors = [tensor.detach() for tensor in operands(name, (129, 768), torch.float16)]
    operator = getattr(torch.ops.course_lib, name)
    operator(*tensors, 0.5, True, EPS)  # compiles, which must not happen while a graph is captured
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        output = operator(*tensors, 0.5, True, EPS)
    seen = []
    for _ in range(3):
        graph.replay()
        seen.append(output.clone())
    assert not torch.equal(seen[0], seen[1])
    assert not torch.equal(seen[1], seen[2])


def test_autocast_gives_the_dtype_of_the_separate_operators():
    for name in OPERATORS:
        for dtype in (torch.float32, torch.bfloat16):
            tensors = [tensor.detach() for tensor in operands(name, (3, 64), dtype)]
            mixed = [tensors[0].bfloat16(), *tensors[1:]]
            with torch.autocast(DEVICE, torch.bfloat16):
                ours, theirs = call(name, mixed, None, 0.0), formula(name, mixed, None, 0.0)
            torch.testing.assert_close(ours, theirs, rtol=0.03, atol=0.03)


def test_the_kernels_run_and_nothing_falls_back():
    if DEVICE != "cuda":
        return  # the CPU runs PyTorch's own operators
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for name in OPERATORS:
            for dtype in TOLERANCE:
                call(name, operands(name, (4, 768), dtype), 1, 0.1)


def test_rows_that_begin_beyond_two_billion_elements_are_reached():
    if DEVICE != "cuda" or torch.cuda.get_device_properties(0).total_memory < 40 * 2**30:
        return  # three tensors of 4.3 GiB, and what comparing them takes
    rows, columns = 2**31 // 1024 + 8, 1024
    weight, bias = torch.ones(columns, device=DEVICE).bfloat16(), torch.zeros(columns, device=DEVICE).bfloat16()
    x = torch.zeros(rows, columns, device=DEVICE, dtype=torch.bfloat16)
    x[-8:] = torch.randn(8, columns, device=DEVICE)
    last = x[-8:]
    output = torch.ops.course_lib.residual_layer_norm(x, x, weight, bias, EPS)
    expected = F.layer_norm((last + last).float(), (columns,), eps=EPS)
    torch.testing.assert_close(output[-8:].float(), expected, rtol=0.02, atol=0.02)
    assert not output[:8].any()
