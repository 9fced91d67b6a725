"""An exported program is taken from an answer, with its checks of sizes; anything else is told apart."""

import pytest
import torch
from torch import fx, nn
from torch.export import Dim, export

from autograder.worker.kinds.exported import NotAnExportError, exported, with_size_checks


class Added(nn.Module):
    def forward(self, x, table):
        return x + table


class Branching(nn.Module):
    def forward(self, x):
        return x + 1 if x.sum() > 0 else x


EXAMPLE = (torch.ones(3, 5, 8), torch.ones(8))


def refused(program, *shape):
    """Return what the checked graph of a program says to an input of this shape; empty if it runs."""
    others = [torch.ones(8)] * (len(program.graph_signature.user_inputs) - 1)
    module = program.module(check_guards=False)
    bare = fx.GraphModule(module, module.graph)  # without the hooks that check sizes, as it is sent
    try:
        with_size_checks(bare, program.range_constraints)(torch.ones(shape), *others)
    except RuntimeError as error:
        return str(error)
    return ""


@pytest.mark.parametrize(
    ("shape", "says"),
    [
        ((3, 7, 8), ""),
        ((9, 500, 8), ""),
        ((10, 5, 8), "dimension 0 of the input `x` is at most 9"),
        ((2, 5, 8), "dimension 0 of the input `x` is at least 3"),
        ((3, 5, 1), "dimension 2 of the input `x` is fixed at 8"),
    ],
)
def test_a_graph_refuses_the_sizes_that_the_program_does_not_take(shape, says):
    shapes = ({0: Dim("batch", min=3, max=9), 1: Dim.DYNAMIC}, None)
    found = refused(export(Added(), EXAMPLE, dynamic_shapes=shapes), *shape)
    assert found.startswith(says)
    assert bool(found) == bool(says)


def test_a_least_size_of_two_is_not_checked_since_export_has_no_other():
    program = export(Added(), EXAMPLE, dynamic_shapes=({0: Dim.DYNAMIC(min=1, max=9)}, None))
    assert refused(program, 1, 5, 8) == ""
    assert "at most 9" in refused(program, 10, 5, 8)


def test_a_size_that_was_left_to_the_export_and_fixed_by_it_is_checked():
    class Fixed(nn.Module):
        def forward(self, x):
            return x.view(3, -1)

    program = export(Fixed(), EXAMPLE[:1], dynamic_shapes=({0: Dim.AUTO, 1: Dim.AUTO},))
    assert "fixed at 3" in refused(program, 6, 5, 8)
    assert refused(program, 3, 50, 8) == ""


def test_a_size_computed_from_a_symbol_has_its_own_limit():
    half = Dim("half", min=1, max=4)
    program = export(Added(), (torch.ones(6, 8), torch.ones(8)), dynamic_shapes=({0: 2 * half}, None))
    assert "at most 8" in refused(program, 10, 8)
    assert refused(program, 8, 8) == ""


@pytest.mark.parametrize(
    ("function", "says"),
    [
        (lambda x: x, "returned a Tensor; return what torch.export.export gives"),
        (lambda x: export(Branching(), (x,)), "torch.export refused: Could not guard on data-dependent"),
        (lambda x: export(nn.Flatten(0), (x,), dynamic_shapes=({0: Dim("b", max=2)},)), "torch.export refused: "),
    ],
)
def test_what_is_no_exported_program_is_told(function, says):
    with pytest.raises(NotAnExportError, match="^The function " + says if says.startswith("returned") else says):
        exported(function, EXAMPLE[:1])
