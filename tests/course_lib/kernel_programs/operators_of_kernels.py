"""Operators made of Triton kernels, in Triton's interpreter: run by `test_kernel_operator.py` alone."""

import sys

import pytest
import torch
import triton
import triton.language as tl
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.nn import functional as F

from course_lib.errors import KernelError
from course_lib.graph import cost, saved_for_backward
from course_lib.kernel_programs import interpreter_of_triton
from course_lib.kernel_programs.kernel_operator import declared_operators, kernel_operator
from course_lib.kernel_programs.quick_random import quick_rand
from course_lib.kernels.dropout import uniform_numbers
from course_lib.kernels.replayed_draws import ReplayedDraws


@triton.jit
def scaled_kernel(x_ptr, y_ptr, n, factor, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y_ptr + at, tl.load(x_ptr + at, mask=at < n, other=0.0) * factor, mask=at < n)


@triton.jit
def dropped_kernel(x_ptr, seed_ptr, y_ptr, n, p, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    keep = tl.rand(tl.load(seed_ptr), at) >= p
    x = tl.load(x_ptr + at, mask=at < n, other=0.0)
    tl.store(y_ptr + at, tl.where(keep, x / (1 - p), 0.0), mask=at < n)


@triton.jit
def squared_kernel(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + at, mask=at < n, other=0.0)
    tl.store(y_ptr + at, x * x, mask=at < n)


@triton.jit
def product_kernel(a_ptr, b_ptr, y_ptr, n, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    a, b = tl.load(a_ptr + at, mask=at < n, other=0.0), tl.load(b_ptr + at, mask=at < n, other=0.0)
    tl.store(y_ptr + at, 2 * a * b, mask=at < n)


def scaled(x, factor: float):
    y = torch.empty_like(x)
    scaled_kernel[(triton.cdiv(x.numel(), 4),)](x, y, x.numel(), factor, BLOCK=4)
    return y


def scaled_backward(grad_y, factor: float):
    return scaled(grad_y, factor)


def dropped(x, p: float, seed):
    y = torch.empty_like(x)
    dropped_kernel[(1,)](x, seed, y, x.numel(), p, BLOCK=triton.next_power_of_2(x.numel()))
    return y


def dropped_backward(grad_y, p: float, seed):
    return dropped(grad_y, p, seed)


def squared(x):
    y, copy = torch.empty_like(x), torch.empty_like(x)
    squared_kernel[(1,)](x, y, x.numel(), BLOCK=triton.next_power_of_2(x.numel()))
    scaled_kernel[(1,)](x, copy, x.numel(), 1.0, BLOCK=triton.next_power_of_2(x.numel()))
    return y, copy


def squared_backward(grad_y, copy):
    by_x = torch.empty_like(copy)
    product_kernel[(1,)](grad_y, copy, by_x, copy.numel(), BLOCK=triton.next_power_of_2(copy.numel()))
    return by_x


@pytest.fixture
def x():
    return torch.randn(3, 5, requires_grad=True)


def test_values_gradients_and_schema(x):
    operator = kernel_operator("made::scaled", scaled, scaled_backward)
    assert str(operator._schema) == "made::scaled(Tensor x, float factor) -> Tensor"
    y = operator(x, 3.0)
    assert torch.equal(y, x * 3)
    assert torch.equal(torch.autograd.grad(y.sum(), x)[0], torch.full_like(x, 3.0))
    assert torch.equal(operator(x.t(), 3.0), x.t() * 3)  # launchers get contiguous tensors


def test_a_second_declaration_replaces_the_first(x):
    kernel_operator("made::twice", scaled, scaled_backward)
    operator = kernel_operator("made::twice", dropped, dropped_backward)
    assert torch.equal(operator(x, 0.0), x)
    assert declared_operators()[operator].forward == "dropped"


def test_a_form_without_data(x):
    operator = kernel_operator("made::formed", scaled, scaled_backward)
    with FakeTensorMode():
        assert operator(torch.empty(2, 7), 1.0).shape == (2, 7)
    recorded = torch.fx.experimental.proxy_tensor.make_fx(lambda x: operator(x, 2.0), tracing_mode="fake")(x)
    assert any("formed" in str(node.target) for node in recorded.graph.nodes)


def test_each_launch_is_charged_for_what_it_moves(x):
    operator = kernel_operator("made::squared", squared, squared_backward, keeps=("copy",))
    assert torch.equal(operator(x), x * x)
    found = cost(operator, (x,))
    assert found.operators == ("squared", "squared")
    assert (found.bytes_read, found.bytes_written) == (2 * 60, 2 * 60)
    whole = cost(lambda x: torch.autograd.grad(operator(x), x, torch.ones(3, 5)), (x,))
    assert whole.operators == ("squared", "squared", "ones", "squared_backward")
    assert torch.allclose(torch.autograd.grad(operator(x).sum(), x)[0], 2 * x)


def test_what_backward_asks_for_is_saved_and_counted(x):
    kept = kernel_operator("made::kept", squared, squared_backward, keeps=("copy",))
    assert saved_for_backward(kept, (x,)).total_bytes == 60
    shown = kernel_operator("made::shown", squared, squared_backward, results=("y", "copy"))
    assert saved_for_backward(shown, (x,)).total_bytes == 60  # also as a result that nobody reads
    drop = kernel_operator("made::dropped", dropped, dropped_backward)
    assert saved_for_backward(lambda x: drop(x, 0.5), (x,)).total_bytes == 8


def test_masks_are_those_of_replayed_draws(x):
    operator = kernel_operator("made::masked", dropped, dropped_backward)

    def own(x):
        return F.dropout(operator(F.dropout(x, 0.3), 0.4), 0.2)

    def eager(x):
        return F.dropout(F.dropout(F.dropout(x, 0.3), 0.4), 0.2)

    with ReplayedDraws(3) as replayed:
        y = own(x)
    assert replayed.drawn_by_position == [1]
    with ReplayedDraws(3, by_position=[1]):
        expected = eager(x)
    assert torch.allclose(y, expected)
    one, other = (torch.autograd.grad(each.sum(), x)[0] for each in (y, expected))
    assert torch.allclose(one, other)


def test_memory_that_is_filled_is_a_launch(x):
    def filled(x):
        y = torch.zeros_like(x)
        scaled_kernel[(4,)](x, y, x.numel(), 1.0, BLOCK=4)
        return y

    operator = kernel_operator("made::filled", filled, lambda grad_y: grad_y + 0)
    found = cost(operator, (x,))
    assert found.operators == ("filled fills memory", "filled")
    assert found.bytes_written == 2 * 60


def refused(forward, backward=scaled_backward, name="made::refused", **options):
    with pytest.raises(KernelError) as error:
        kernel_operator(name, forward, backward, **options)
    return str(error.value)


def test_a_declaration_that_does_not_fit_is_told_what_is_expected():
    assert 'expected one such as "step::block_end"' in refused(scaled, name="scaled")
    assert "there is an operator 'aten::add' already" in refused(scaled, name="aten::add")
    assert "expected names among grad_z, x, factor, z" in refused(scaled, results=("z",))
    assert "the tensors of `scaled` are x" in refused(scaled, gradients=("w",))
    assert "need names that differ" in refused(scaled, keeps=("x",))
    assert "at least one gradient" in refused(scaled, gradients=())
    assert "plain parameters only" in refused(lambda *x: x)

    def of_numbers(n: int):
        return n

    assert "no parameter for a tensor" in refused(of_numbers)


def called(forward, *args, **options):
    operator = kernel_operator("made::called", forward, scaled_backward, **options)
    with pytest.raises(KernelError) as error:
        torch.autograd.grad(operator(*args).sum(), args[0])
    return str(error.value)


def test_launchers_that_return_something_else_are_told_so(x):
    def itself(x, factor: float):
        return x

    def in_place(x, factor: float):
        scaled_kernel[(4,)](x, x, x.numel(), factor, BLOCK=4)
        return torch.empty_like(x)

    def outside(x, factor: float):
        y = torch.empty_like(x)
        scaled_kernel[(5,)](x, y, x.numel() + 4, factor, BLOCK=4)
        return y

    def two(x, factor: float):
        return scaled(x, factor), scaled(x, factor)

    assert "returned a tensor that it was given" in called(itself, x, 2.0)
    assert "writes to argument 1, which others read" in called(in_place, x, 2.0)
    assert "outside of every tensor" in called(outside, x, 2.0)
    assert "returned 2 values (Tensor); expected 1 tensors: y" in called(two, x, 2.0)

    def columns(grad_y, factor: float):
        return torch.empty(5)

    operator = kernel_operator("made::columns", scaled, columns)
    with pytest.raises(KernelError, match=r"a gradient by x of shape \(5,\); expected that of x, \(3, 5\)"):
        torch.autograd.grad(operator(x, 1.0).sum(), x)


@triton.jit
def numbers_kernel(seed_ptr, y_ptr, first, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    tl.store(y_ptr + at, tl.rand(tl.load(seed_ptr), first + at))


@pytest.mark.parametrize("first", [0, 2**31 - 100, 2**33])
def test_quick_numbers_are_those_of_triton(monkeypatch, first):
    seed, slow, quick = torch.randint(2**63 - 1, (1,)), torch.empty(256), torch.empty(256)
    numbers_kernel[(1,)](seed, slow, first, BLOCK=256)
    monkeypatch.setattr(tl, "rand", quick_rand(interpreter_of_triton()))
    numbers_kernel[(1,)](seed, quick, first, BLOCK=256)
    assert torch.equal(slow, quick)
    if first < 2**31 - 256 or first > 2**32:
        assert torch.equal(slow, uniform_numbers(int(seed), first + torch.arange(256)))


if __name__ == "__main__":
    sys.exit(pytest.main([__file__, "-p", "no:cacheprovider", "-p", "no:xdist", "--noconftest"]))
