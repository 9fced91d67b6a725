"""What stands outside of a program is after `fuse` as it was before: autograd graphs, gradients, variables, draws."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from course_lib.fusion import fuse
from course_lib.verify import verify

X = torch.randn(4, generator=torch.Generator().manual_seed(0))


class Holds(nn.Module):
    """A module with a tensor that is no parameter, but the result of other operators."""

    def __init__(self, held: Tensor) -> None:
        super().__init__()
        self.held, self.weight = held, nn.Parameter(torch.ones(4))

    def forward(self, x: Tensor) -> Tensor:
        return x * self.held * self.weight


def _closure(held: Tensor) -> Callable[..., Any]:
    return lambda x: x * held.exp()


@pytest.mark.parametrize("make", [Holds, _closure], ids=["attribute", "closure"])
def test_the_check_goes_back_through_no_graph_of_the_caller(make: Callable[[Tensor], Callable[..., Any]]) -> None:
    leaf = torch.ones(4, requires_grad=True)
    held = leaf.exp()
    held.retain_grad()
    calls: list[int] = []
    leaf.register_post_accumulate_grad_hook(lambda _: calls.append(1))  # an optimizer may step in such a hook
    result = fuse(make(held), (X,))
    assert (result.lost, leaf.grad, held.grad, calls) == ((), None, None, [])
    held.sum().backward()
    assert leaf.grad is not None
    assert calls == [1]


def test_a_graph_that_leads_to_a_parameter_of_the_program_is_kept_with_its_gradients() -> None:
    model = Holds(X)
    model.held = model.weight.exp()
    model.held.retain_grad()
    (model.held * 2).sum().backward(retain_graph=True)
    before = [torch.clone(one.grad) for one in (model.weight, model.held) if one.grad is not None]
    assert fuse(model, (X,)).lost == ()
    assert model.weight.grad is not None
    assert model.held.grad is not None
    assert torch.equal(model.weight.grad, before[0])
    assert torch.equal(model.held.grad, before[1])
    model.held.sum().backward()


def test_verifying_keeps_the_graphs_of_the_caller_too() -> None:
    leaf = torch.ones(4, requires_grad=True)
    held = leaf.exp()
    assert verify(_closure(held), _closure(held), (X,)).passed
    assert leaf.grad is None
    held.sum().backward()
