"""An exported program is taken from an answer, with the sizes that it declares; anything else is told apart."""

import pytest
import torch
from torch import nn
from torch.export import Dim, export

from autograder.worker.kinds.exported import NotAnExportError, exported, sizes_of


class Added(nn.Module):
    def forward(self, x, table):
        return x + table


class Branching(nn.Module):
    def forward(self, x):
        return x + 1 if x.sum() > 0 else x


EXAMPLE = (torch.ones(3, 5, 8), torch.ones(8))


def test_fixed_sizes_are_numbers_and_open_ones_have_a_name_and_limits():
    shapes = ({0: Dim("batch", min=2, max=9), 1: Dim.DYNAMIC}, None)
    found = sizes_of(exported(lambda *given: export(Added(), given, dynamic_shapes=shapes), EXAMPLE))
    (batch, length, width), table = found
    assert batch[1:] == [2, 9]
    assert length[2] is None
    assert (width, table) == (8, [8])


def test_a_size_that_was_left_to_the_export_and_fixed_by_it_is_a_number():
    class Fixed(nn.Module):
        def forward(self, x):
            return x.view(3, -1)

    program = export(Fixed(), EXAMPLE[:1], dynamic_shapes=({0: Dim.AUTO, 1: Dim.AUTO},))
    (sizes,) = sizes_of(program)
    assert sizes[0] == 3
    assert isinstance(sizes[1], list)


def test_a_size_computed_from_a_symbol_has_its_own_limits():
    half = Dim("half", min=1, max=4)
    program = export(Added(), (torch.ones(6, 8), torch.ones(8)), dynamic_shapes=({0: 2 * half}, None))
    assert sizes_of(program)[0][0][1:] == [2, 8]


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
