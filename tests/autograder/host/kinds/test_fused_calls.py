"""Swapped arguments and erased writes are read from the graph, so that wrong numbers get a reason."""

from dataclasses import replace

import pytest
import torch
from torch import fx

import course_lib.kernels  # noqa: F401 - registers the operators
from autograder.host.artifacts import Artifact
from autograder.host.artifacts.operator_calls import read_calls
from autograder.host.draw import Draw
from autograder.host.kinds.fused_calls import differing_literals, erased_write, swaps, with_literals
from autograder.host.kinds.graph_values import _unread
from autograder.host.traced import Program, TensorSpec, traced
from course_lib.graph import from_data, to_data
from course_lib.graph.data.reader import MAX_KEYWORDS

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


NORM = "torch.ops.course_lib.scale_dropout_residual_rms_norm"
EVALUATED = {"training": False, "eps": 1e-5}


@pytest.mark.parametrize("named", [False, True])
def test_wrong_numbers_of_a_fused_call_become_those_of_the_program(named):
    def wrong(x, s, r, w):
        operator = torch.ops.course_lib.scale_dropout_residual_rms_norm
        return operator(x, s, r, w, p=0.3, training=True, eps=0.5) if named else operator(x, s, r, w, 0.3, True, 0.5)

    program = traced(Program("`norm`", lambda: wrong, (ROWS,) * 4, 1, literals=EVALUATED), Draw(3, "numbers"))
    artifact = artifact_of(wrong)
    repaired = with_literals(artifact, NORM, program)

    assert differing_literals(artifact, NORM, program) == (
        "The fused call has training=True; the program `norm` has False."
    )
    assert differing_literals(repaired, NORM, program) == ""
    inputs = (torch.randn(4, 8), torch.randn(8), torch.randn(4, 8), torch.randn(8))
    x, s, r, w = inputs
    found = from_data(repaired.graph, repaired.tensors)(*inputs)
    torch.testing.assert_close(found, torch.nn.functional.rms_norm(r + x * s, (8,), w, 1e-5))


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


def test_a_swap_that_makes_too_many_arguments_gives_no_reason():
    def called(x, b):
        return torch.ops.course_lib.bias_silu(x, b)

    def written(keywords):
        artifact = artifact_of(called)
        nodes = [dict(node) for node in artifact.graph["nodes"]]
        nodes[2]["kwargs"] = {f"k{number}": 1 for number in range(keywords)}
        return replace(artifact, graph={**artifact.graph, "nodes": nodes})

    program = traced(Program("`called`", lambda: called, (ROWS, TensorSpec((8,))), 1), Draw(3, "keywords"))
    for keywords in (0, MAX_KEYWORDS):
        (swap,) = swaps(written(keywords), FUSED)
        assert _unread(swap.artifact, program) == ""
