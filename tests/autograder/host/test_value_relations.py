"""A wrong result is described by the one change that leads to it from the right one, if there is one."""

import re

import pytest
import torch

from autograder.host.value_relations import imprecise, relation

COLUMNS = torch.arange(6)


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        (lambda x: x * 0, "zero everywhere"),
        (lambda x: -x, "sign is the wrong way round"),
        (lambda x: x / 8, "Every value is 0.125 times"),
        (lambda x: x - 3, "Every value is -3 more"),
        (lambda x: x.mT, "the transpose"),
        (lambda x: x.movedim(0, 1).reshape(x.shape), "stand in other places"),
        (lambda x: x.flip(-1), "stand in other places"),
        (lambda x: x * torch.rand(6, 6, 1, dtype=x.dtype), "Along axis 2 every line is the expected one times"),
        (lambda x: x - x.mean(1, keepdim=True), "Along axis 1 every line is the expected one plus"),
        (lambda x: torch.where(COLUMNS == 4, 1.0, x), r"Only values in \[:, :, 4\] are wrong"),
        (lambda x: x.clamp(max=1), "values are wrong, the others are right"),
    ],
)
def test_a_simple_change_is_named(wrong, says):
    right = torch.randn(6, 6, 6, dtype=torch.float64)
    found = wrong(right).float()

    assert re.search(says, relation(found, right))


@pytest.mark.parametrize(
    ("found", "right"),
    [
        (torch.tensor([1.0, 2.0]), torch.tensor([2.0, 4.0])),  # two numbers are always related
        (torch.full((5,), 2.0), torch.full((5,), 1.0)),  # of equal numbers any is a multiple, and any a sum
        (torch.tensor([float("inf"), 1.0, 2.0, 3.0]), torch.ones(4)),
        (torch.empty(0, 4), torch.empty(0, 4)),
    ],
)
def test_nothing_is_said_without_a_relation(found, right):
    assert relation(found, right.double()) == ""


def test_other_numbers_have_no_relation():
    assert relation(torch.randn(6, 6), torch.randn(6, 6, dtype=torch.float64)) == ""


def test_a_lower_precision_is_named():
    x = torch.randn(1000, dtype=torch.float64)
    error = float((x.float().double() - x).abs().max())

    assert "float32" in imprecise(error, 4.0, torch.float64)
    assert imprecise(1e-12, 4.0, torch.float64) == ""
    assert imprecise(1e-6, 4.0, torch.float32) == ""
    assert "constant" in imprecise(1e-3, 4.0, torch.float32)
