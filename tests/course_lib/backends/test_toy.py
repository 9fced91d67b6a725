"""The compiler for the toy machine: numbers as exact as eager PyTorch's, launches and bytes as few as they can be."""

import itertools

import pytest
import torch
import torch.nn.functional as F
from torch import fx

from course_lib.backends import Prices, lower
from course_lib.backends.toy import ToyExecutable, ToyTarget
from course_lib.machine import Machine
from course_lib.verify.error_rule import deviation
from tests.drawn import some

FREE = Prices(launch_us=1e-3, handover_us=0)  # so that the smallest part is kept
SIZE = (3, 127)
OTHER_SIZES = [(1, 1), (2, 128), (1, 129), (0, 5)]  # two for each program, others in each run

# Programs of x (rows, columns), y of the same shape, row (columns,) and column (rows, 1), and the launches they take
PROGRAMS = {
    "a chain": (lambda x, y, row, column: torch.relu(x + row) * torch.tanh(y), 1),
    "numbers on either side": (lambda x, y, row, column: (1 - x) * 2 + y / 3, 1),
    "broadcasting": (lambda x, y, row, column: x * row + column * 0.5, 1),
    "softmax": (lambda x, y, row, column: torch.softmax(x * y, -1), 1),
    "log softmax": (lambda x, y, row, column: torch.log_softmax(x, -1) + y, 1),
    "layer norm": (lambda x, y, row, column: F.layer_norm(x + y, row.shape, row, row), 1),
    "gelu": (lambda x, y, row, column: F.gelu(x + row), 1),
    "gelu, tanh": (lambda x, y, row, column: F.gelu(x + row, approximate="tanh"), 1),
    "silu": (lambda x, y, row, column: F.silu(x) * y, 1),
    "a sum over rows": (lambda x, y, row, column: (x * y).sum(0), 1),
    "a sum over columns that goes on": (lambda x, y, row, column: x - (x * y).sum(1, keepdim=True), 1),
    "a sum that drops its dimension": (lambda x, y, row, column: torch.exp((x + y).sum(1)), 2),
    "two directions": (lambda x, y, row, column: (x * y).sum(0) + (x * y).sum(1).sum(), 4),
    "a mask": (lambda x, y, row, column: torch.where(x > y, x, 0.25), 1),
    "comparisons": (lambda x, y, row, column: torch.logical_and(x > 0, torch.logical_not(y <= x)), 1),
    "a linear layer": (lambda x, y, row, column: torch.relu(x @ y.t() + column.t()), 1),
    "a product read in two ways": (lambda x, y, row, column: (x.t() @ y) * 2 + (y.t() @ x), 2),
    "views of what was computed": (lambda x, y, row, column: (x + y).t().contiguous() * 2, 2),
    "a part of a tensor": (lambda x, y, row, column: x[:, :1] * y + row, 1),
    "constants": (lambda x, y, row, column: torch.where(x > 0, torch.full_like(x, 3.0), torch.zeros_like(y)), 1),
    "other types": (lambda x, y, row, column: (x > 0).to(x.dtype) * y + x.double().to(x.dtype), 1),
    "powers": (lambda x, y, row, column: torch.rsqrt(x**2 + 1) + torch.sqrt(y.abs()), 1),
    "a small value read twice": (lambda x, y, row, column: (x + torch.exp(row * 2), torch.exp(row * 2) + 1), 2),
    "a small value and a large one": (lambda x, y, row, column: (lambda small: (x + small, small))(row * 2), 1),
    "the input itself": (lambda x, y, row, column: (x, x.t(), torch.relu(x + y)), 1),
}  # fmt: skip


def inputs_of(shape: tuple[int, int], dtype: torch.dtype = torch.float32) -> tuple[torch.Tensor, ...]:
    rows, columns = shape
    generator = torch.Generator().manual_seed(rows * 1000 + columns)
    shapes = ((rows, columns), (rows, columns), (columns,), (rows, 1))
    return tuple(torch.randn(each, generator=generator, dtype=torch.float64).to(dtype) for each in shapes)


def launches_of(lowered) -> int:
    return sum(part.compiled.launches for part in lowered.parts if isinstance(part.compiled, ToyExecutable))


def check(program, inputs, registers: int = 8):
    """Lower a program whole, and compare it with eager PyTorch by the error rule."""
    lowered = lower(fx.symbolic_trace(program), inputs, ToyTarget(Machine(registers)), prices=FREE)
    as_tuple = lambda value: value if isinstance(value, tuple) else (value,)  # noqa: E731  # read where it is used
    truths = as_tuple(program(*(each.double() for each in inputs)))
    for actual, eager, truth in zip(as_tuple(lowered(*inputs)), as_tuple(program(*inputs)), truths, strict=True):
        assert (actual.shape, actual.dtype) == (eager.shape, eager.dtype)
        assert actual.stride() == eager.stride() or actual.numel() == 0
        found = deviation(actual, truth, eager)
        assert found.within_bound, found
    return lowered


@pytest.mark.parametrize("name", PROGRAMS)
def test_numbers_agree_with_eager_pytorch_and_no_launch_is_more_than_it_must(name):
    program, launches = PROGRAMS[name]
    for shape in some(OTHER_SIZES, 2, name=f"sizes for {name}"):
        check(program, inputs_of(shape))
    lowered = check(program, inputs_of(SIZE))
    assert lowered.refusals == ()
    assert launches_of(lowered) == launches


@pytest.mark.parametrize("dtype", [torch.float64, torch.bfloat16, torch.float16], ids=str)
@pytest.mark.parametrize("name", ["a chain", "softmax", "layer norm", "gelu", "a linear layer", "a sum over rows"])
def test_numbers_agree_at_other_precisions(name, dtype):
    check(PROGRAMS[name][0], inputs_of((5, 33), dtype))


@pytest.mark.parametrize("name", ["softmax", "layer norm", "broadcasting", "a mask"])
def test_few_registers_cost_spills_and_no_digits(name):
    for registers in (4, 5):
        check(PROGRAMS[name][0], inputs_of((3, 17)), registers)


def test_strided_and_repeated_inputs_are_read_where_they_lie():
    x, y, row, column = inputs_of((4, 6))
    inputs = (x.t().contiguous().t(), y[:1].expand(4, 6), row, column)
    for name in ("a chain", "softmax", "a linear layer", "a sum over rows"):
        check(PROGRAMS[name][0], inputs)


def test_inputs_are_left_alone_and_results_lie_elsewhere():
    program = PROGRAMS["layer norm"][0]
    inputs = inputs_of((3, 8))
    before = [each.clone() for each in inputs]
    lowered = check(program, inputs)
    first, second = lowered(*inputs), lowered(*inputs)
    assert all(torch.equal(a, b) for a, b in zip(inputs, before, strict=True))
    places = {each.data_ptr() for each in (first, second, *inputs)}
    assert len(places) == 2 + len(inputs)


def test_bytes_are_those_of_one_ideal_kernel():
    x, y, row, column = inputs_of((64, 128))
    lowered = check(PROGRAMS["layer norm"][0], (x, y, row, column))
    (part,) = lowered.parts
    assert part.compiled.bytes_moved == 4 * (3 * 64 * 128 + 128)  # the weight is also the bias here, and is read once
    assert lowered.before.launches == 2


def test_a_linear_layer_on_three_dimensions_takes_its_activation_along():
    inputs = torch.randn(2, 5, 8), torch.randn(16, 8), torch.randn(16), torch.randn(2, 5, 16)
    lowered = check(lambda x, w, b, r: F.layer_norm(F.gelu(F.linear(x, w, b)) + r, (16,)), inputs)
    assert launches_of(lowered) == 1
    assert lowered.before.launches == 4


def test_a_product_that_is_needed_in_two_shapes_is_kept_in_the_first():
    inputs = torch.randn(10, 8), torch.randn(8, 6), torch.randn(2, 5, 6), torch.randn(1, 6)

    def program(x, w, r, b):
        product = torch.relu(x @ w + b)
        return product.view(2, 5, 6) + r, torch.tanh(product)

    assert launches_of(check(program, inputs)) == 2
    assert launches_of(check(lambda x, w, r, b: torch.relu(x @ w + b).view(2, 5, 6) + r, inputs)) == 1


def test_attention_scores_take_their_softmax_along():
    inputs = torch.randn(2, 3, 5, 4), torch.randn(2, 3, 5, 4), torch.randn(2, 1, 1, 5)
    lowered = check(lambda q, k, m: torch.softmax(q @ k.transpose(-1, -2) / 2 + m, -1), inputs)
    assert launches_of(lowered) == 1  # the keys are read transposed where they lie
    assert lowered.before.launches > 3


def test_normalisations_of_channels_are_one_launch():
    x, weight, bias, mean, variance = torch.randn(2, 6, 5, 5), *torch.randn(3, 6), torch.rand(6) + 0.5
    inputs = (x, mean, variance, weight, bias)
    lowered = check(lambda x, m, v, w, b: torch.relu(F.batch_norm(x, m, v, w, b)), inputs)
    assert launches_of(lowered) == 1


def test_infinities_and_nan_stand_where_eager_has_them():
    values = torch.tensor([0.0, -0.0, 1.0, -1.0, torch.inf, -torch.inf, torch.nan])
    x, y = (each.reshape(7, 7) for each in torch.meshgrid(values, values, indexing="ij"))
    column = torch.zeros(7, 1)
    # Not gelu: eager PyTorch's is NaN at infinity on some processors, where the formula gives infinity.
    names = ("a chain", "numbers on either side", "softmax", "a mask", "comparisons", "powers", "silu")
    for name, weight in itertools.product(names, (values, torch.zeros(7))):
        check(PROGRAMS[name][0], (x, y, weight, column))


def test_the_disassembly_of_a_linear_layer_reads_like_its_formula():
    lowered = check(lambda x, w, b: torch.relu(x @ w + b), (torch.randn(2, 3), torch.randn(3, 4), torch.randn(4)))
    assert str(lowered.parts[0].compiled.program).splitlines()[1:-1] == [
        "kernel over [2, 4]",
        "    r0 = matmul input_0[2×3 by 3,1], input_1[3×4 by 4,1]",
        "    r1 = load input_2[1×4 by 0,1]",
        "    r0 = add r0, r1",
        "    r0 = max r0, 0",
        "    store relu[2×4 by 4,1] = r0",
    ]
