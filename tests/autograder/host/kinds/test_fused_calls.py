"""Swapped arguments and erased writes are read from the graph, so that wrong numbers get a reason."""

import pytest
import torch
from torch import fx

import course_lib.kernels  # noqa: F401 - registers the operators
from autograder.host.artifacts import Artifact
from autograder.host.artifacts.operator_calls import read_calls
from autograder.host.draw import Draw
from autograder.host.kinds.fused_calls import erased_write, swaps
from autograder.host.traced import Program, TensorSpec, traced
from course_lib.graph import from_data, to_data

FUSED = "torch.ops.course_lib.bias_silu"
ROWS = TensorSpec((4, 8))


def artifact_of(function):
    module = fx.symbolic_trace(function)
    return Artifact(*to_data(module), read_calls(module))


@pytest.mark.parametrize("named", [False, True])
def test_the_right_order_is_among_the_swaps(named):
    def swapped(x, b):
        operator = torch.ops.course_lib.bias_silu
        return operator(x=b, bias=x) if named else operator(b, x)

    (swap,) = swaps(artifact_of(swapped), FUSED)
    x, b = torch.randn(4, 8), torch.randn(8)

    assert (swap.first, swap.second) == ("x", "bias")
    found = from_data(swap.artifact.graph, swap.artifact.tensors)(x, b)
    torch.testing.assert_close(found, torch.nn.functional.silu(x + b))


def test_without_a_fused_call_nothing_is_swapped():
    assert list(swaps(artifact_of(lambda x: x + 1), FUSED)) == []


def written(x):
    h = x * 2
    h.add_(1)
    return h.view(-1).mul_(2).sum() + h


@pytest.mark.parametrize(
    ("result", "name"),
    [
        (written, ""),
        (lambda x: x * 2, "add_"),
        (lambda x: (x * 2).add_(1), "mul_"),
        (lambda x: x.mul_(2).add_(1).__and__(1), ""),
    ],
)
def test_a_write_that_is_gone_is_named(result, name):
    program = traced(Program("`written`", lambda: written, (ROWS,), 0), Draw(3, "writes"))
    said = erased_write(artifact_of(result), program)

    assert said.startswith(f"The call of {name} is gone") if name else not said
