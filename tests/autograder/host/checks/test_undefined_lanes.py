"""Which masked loads change an output is found for any outputs that an answer gives."""

from types import SimpleNamespace

import torch

from autograder.host.checks.undefined_lanes import undefined_loads
from autograder.host.kinds.triton import KernelRun


def run_of(output: torch.Tensor, *, undefined: tuple[int, ...] = ()) -> KernelRun:
    """Return a run with one output and nothing else to tell."""
    return KernelRun((output,), False, (), (), (), (), (), (), 0, 0, undefined)


def found(first: torch.Tensor, defined: torch.Tensor) -> list[int]:
    """Return the lines for an answer whose load of line 3 is undefined, with zeros there and without."""
    answer = SimpleNamespace(run=lambda *_, zero_at: run_of(defined))
    return undefined_loads(answer, run_of(first, undefined=(3,)), None, "launcher")[0]  # type: ignore[arg-type]  # stand-ins for answer and case


def test_an_output_of_another_dtype_or_shape_is_another_output() -> None:
    ones = torch.ones(4)
    assert found(ones, ones.bool()) == found(ones, torch.ones(2)) == [3]


def test_the_same_nans_are_the_same_output() -> None:
    nans = torch.tensor([1.0, torch.nan])
    assert found(nans, nans.clone()) == []
    assert found(nans, torch.ones(2)) == [3]
