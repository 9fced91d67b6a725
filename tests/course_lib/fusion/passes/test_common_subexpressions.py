"""What is computed twice is computed once, unless something makes the second time differ."""

from collections.abc import Callable

import pytest
import torch
import torch.nn.functional as F

from course_lib.fusion import fuse
from course_lib.graph import count_operators
from tests.course_lib.fusion.passes.rewrites import fused, left_alone, normal, same

NAME = "common_subexpressions"
Tensor = torch.Tensor
X = normal(3, 4)


def _twice(x: Tensor) -> Tensor:
    return torch.exp(x + 1) * torch.exp(x + 1)


def test_equal_computations_are_merged_and_compute_the_same() -> None:
    result = fused(_twice, (X,), NAME, count=2)
    assert count_operators(result.graph_module) == {"operator.add": 1, "operator.mul": 1, "torch.exp": 1}
    same(_twice, result, (X,))


MERGED: dict[str, Callable[[Tensor], Tensor]] = {
    "keywords in another order": lambda x: torch.sum(x, dim=0, keepdim=True) + torch.sum(x, keepdim=True, dim=0),
    "nested arguments": lambda x: torch.cat([x, x], 0) + torch.cat((x, x), 0),
    "slices": lambda x: x[:, 1:3] + x[:, 1:3],
}


@pytest.mark.parametrize("case", MERGED)
def test_arguments_are_compared_whole(case: str) -> None:
    same(MERGED[case], fused(MERGED[case], (X,), NAME), (X,))


DIFFERENT: dict[str, Callable[[Tensor], object]] = {
    "other keyword": lambda x: torch.sum(x, dim=0) + torch.sum(x, dim=0, keepdim=True),
    "other nested argument": lambda x: torch.cat([x, x * 2], 0) + torch.cat([x * 2, x], 0),
    "one and one point zero": lambda x: (x > 0) * 1 + (x > 0) * 1.0,
    "one and true": lambda x: (x > 0).long() * 1 + (x > 0).long() * True,
    "minus zero": lambda x: torch.atan2(x * 0.0, x) + torch.atan2(x * -0.0, x),
    "dropout": lambda x: F.dropout(x, 0.5, True) + F.dropout(x, 0.5, True),
    "random": lambda x: torch.rand_like(x) + torch.rand_like(x),
    "uninitialised": lambda x: torch.empty_like(x).fill_(1) + torch.empty_like(x).fill_(2),
}


@pytest.mark.parametrize("case", DIFFERENT)
def test_what_is_not_the_same_stays_two(case: str) -> None:
    result = fuse(DIFFERENT[case], (X,), (NAME,))
    before = fuse(DIFFERENT[case], (X,), ())
    kept = count_operators(result.graph_module)
    merged = result.num_matches
    if case == "other nested argument":
        assert merged == 1  # x * 2
    elif case == "one and one point zero":
        assert merged == 1  # x > 0
    elif case == "one and true":
        assert merged == 2  # x > 0 and its conversion
    else:
        assert merged == 0
        assert kept == count_operators(before.graph_module)
    if case not in ("dropout", "random"):
        torch.testing.assert_close(result.graph_module(X), DIFFERENT[case](X), rtol=0, atol=0)


def _changed_between(x: Tensor) -> Tensor:
    first = torch.exp(x)
    x[0].add_(1)
    return first * torch.exp(x)


def _result_changes(x: Tensor) -> Tensor:
    first, second = x * 2, x * 2
    first.add_(1)
    return first + second


def _both_returned(x: Tensor) -> tuple[Tensor, Tensor]:
    return x * 2, x * 2


REFUSED: dict[str, tuple[Callable[[Tensor], object], str]] = {
    "an operand changes between": (_changed_between, "mutation"),
    "a result changes": (_result_changes, "mutation"),
    "both are returned": (_both_returned, "is an output"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_twins_that_must_stay_two_are_reported(case: str) -> None:
    program, rule = REFUSED[case]
    same(program, left_alone(program, (X,), NAME, rule), (X,), gradients=False)
