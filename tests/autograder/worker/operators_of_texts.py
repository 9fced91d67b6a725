"""Operators of checked texts in the clean worker, where Triton interprets: run by `test_own_operators.py` alone."""

import sys

import pytest
import torch
from torch import fx
from torch.nn import functional as F

from autograder.host.artifacts.declared_operators import checked_operators
from autograder.host.shared_inputs import to_raw
from autograder.protocol.requests.answers import Arguments, OwnOperator, TensorCall
from autograder.protocol.requests.loads import CallGraph, CountStep, LoadGraph
from autograder.worker.clean_worker import load_graph
from autograder.worker.kernel_calls import LauncherError
from autograder.worker.own_operators import own_operators
from autograder.worker.tensors import to_torch
from course_lib.graph import to_data
from course_lib.kernels import bias_gelu, dispatch

TEXT = """
SCALE = tl.constexpr(0.1)


@triton.jit
def norm_kernel(x_ptr, y_ptr, rows, n, eps, ROWS: tl.constexpr, BLOCK: tl.constexpr):
    row = tl.program_id(0) * ROWS + tl.arange(0, ROWS)[:, None]
    column = tl.arange(0, BLOCK)[None, :]
    inside = (row < rows) & (column < n)
    x = tl.load(x_ptr + row * n + column, mask=inside, other=0.0).to(tl.float32)
    total = tl.zeros((ROWS,), dtype=tl.float32)
    total += tl.sum(x, axis=1)
    share = 1 / n
    centred = tl.where(inside, x - total[:, None] * share, 0.0)
    third = eps / 3
    rstd = tl.rsqrt(tl.sum(centred * centred, axis=1)[:, None] / n + third * 3)
    tl.store(y_ptr + row * n + column, centred * rstd * SCALE, mask=inside)


def norm(x, eps: float):
    n = x.shape[-1]
    y = torch.empty_like(x)
    norm_kernel[(triton.cdiv(x.numel() // n, 4),)](
        x, y, x.numel() // n, n, eps, ROWS=4, BLOCK=triton.next_power_of_2(n)
    )
    return y


def norm_backward(grad_y, x, eps: float):
    return torch.zeros_like(x)


@triton.jit
def product_kernel(a_ptr, b_ptr, y_ptr, K: tl.constexpr, B: tl.constexpr):
    row, column = tl.arange(0, B)[:, None], tl.arange(0, B)[None, :]
    y = tl.zeros((B, B), dtype=tl.float32)
    for start in range(0, K, 16):
        inner = start + tl.arange(0, 16)
        a = tl.load(a_ptr + row * K + inner[None, :])
        y = tl.dot(a, tl.load(b_ptr + column * K + inner[:, None]), y)
    last = K - 16 + tl.arange(0, 16)
    rest = tl.load(a_ptr + row * K + last[None, :])
    y += tl.dot(rest, tl.load(b_ptr + column * K + last[:, None]), out_dtype=tl.float32)
    tl.store(y_ptr + row * B + column, y)


def product(a, b):
    y = torch.empty((16, 16), dtype=a.dtype, device=a.device)
    product_kernel[(1,)](a, b, y, K=32, B=16)
    return y


def product_backward(grad_y, a, b):
    return torch.zeros_like(a), torch.zeros_like(b)


@triton.jit
def drop_kernel(x_ptr, seed_ptr, y_ptr, n, p, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    keep = tl.rand(tl.load(seed_ptr), at) >= p
    tl.store(y_ptr + at, tl.where(keep, tl.load(x_ptr + at, mask=at < n, other=0.0), 0.0), mask=at < n)


def drop(x, p: float, seed):
    y = torch.empty_like(x)
    drop_kernel[(1,)](x, seed, y, x.numel(), p, BLOCK=triton.next_power_of_2(x.numel()))
    return y


def drop_backward(grad_y, p: float, seed):
    return drop(grad_y, p, seed)


def computed(x):
    return x + 1


def computed_backward(grad_y):
    return torch.zeros_like(grad_y)
"""
TENSORS = {"norm": ("x",), "product": ("a", "b"), "drop": ("x",), "computed": ("x",)}


def made(*names):
    declared = [OwnOperator(f"mine::{n}", n, f"{n}_backward", ("y",), (), TENSORS[n]) for n in names]
    return checked_operators(declared, {"answer": TEXT})


def operator(name):
    own = made(name)
    return own_operators(own.declared, own.kernels)[f"own.mine::{name}"]


@pytest.mark.parametrize(("dtype", "error"), [(torch.float32, 1e-6), (torch.float64, 1e-15)])
def test_kernels_in_float32_are_exact_in_a_program_in_double_precision(dtype, error):
    x = torch.randn(5, 9).double()
    assert torch.allclose(
        operator("norm")(x.to(dtype), 1e-3).double(), F.layer_norm(x, (9,), eps=1e-3) / 10, atol=error
    )
    a, b = torch.randn(2, 16, 32).double()
    expected = a @ b.t() + a[:, 16:] @ b[:, 16:].t()
    assert torch.allclose(operator("product")(a.to(dtype), b.to(dtype)).double(), expected, atol=100 * error)


def test_a_launcher_sees_no_values():
    with pytest.raises(LauncherError, match="computes with a tensor"):
        operator("computed")(torch.ones(3))


class Dropped(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.randn(4, 8))
        self.bias = torch.nn.Parameter(torch.randn(8))

    def forward(self, x):
        x = F.dropout(x @ self.weight, 0.5)
        return bias_gelu(operator("drop")(x, 0.25), self.bias)


def loaded():
    own = made("drop")
    graph = fx.Graph()
    x, weight, bias = graph.placeholder("x"), graph.get_attr("weight"), graph.get_attr("bias")
    product = graph.call_function(F.dropout, (graph.call_function(torch.matmul, (x, weight)), 0.5))
    dropped = graph.call_function(operator("drop"), (product, 0.25))
    graph.output(graph.call_function(torch.ops.course_lib.bias_gelu.default, (dropped, bias)))
    data, tensors = to_data(fx.GraphModule(Dropped(), graph), own={operator("drop"): "own.mine::drop"})
    load = LoadGraph(data, tuple(tensors), None, operators=own.declared, kernels=own.kernels)
    return load_graph(load, [to_raw(tensor) for tensor in tensors.values()])


def test_draws_by_position_are_told_and_repeated():
    handlers, x = loaded(), to_raw(torch.randn(3, 4))
    call = CallGraph(TensorCall(Arguments(({"tensor": 0},))), True, False, draws=5)
    first, second = handlers[CallGraph](call, [x]), handlers[CallGraph](call, [x])
    assert first.body.by_position == (1,)
    assert torch.equal(to_torch(first.tensors[0]), to_torch(second.tensors[0]))


def test_a_step_is_counted_by_its_launches_and_its_results_come_back():
    found = loaded()[CountStep](CountStep(("weight", "bias"), 5), [to_raw(torch.randn(3, 4))])
    # product, three for dropout, seed and kernel, bias with GELU
    assert found.body.cost.kernels == 7
    assert found.body.gradients == (True, True)
    assert [to_torch(each).shape for each in found.tensors] == [(), (4, 8), (8,)]


def test_the_librarys_operators_stay_compiled_beside_an_interpreter():
    operator("drop")
    assert not dispatch.runs_as_kernel("bias_gelu", torch.ones(2, 3))


if __name__ == "__main__":
    sys.exit(pytest.main(["-p", "no:xdist", __file__]))
