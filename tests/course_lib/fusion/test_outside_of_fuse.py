"""What stands outside of a program is after `fuse` as it was before: autograd graphs, gradients, variables, draws."""

import random
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, fx, nn

from course_lib.capture import capture
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


LOG: list[str] = []
COUNT = 0
ARRAY = np.zeros(3)
THINGS = np.array([[], None], dtype=object)
NUMPY, OLD_NUMPY = np.random.default_rng(1), np.random.RandomState(1)
PYTHON, SYSTEM = random.Random(1), type("Constant", (random.SystemRandom,), {"random": lambda _: 0.5})()
TORCH = torch.Generator()


def _do_all(x: Tensor) -> Tensor:
    global COUNT
    COUNT += 1
    LOG.append("called")
    ARRAY[0] += 1
    THINGS[0].append(1)
    number = NUMPY.random() + OLD_NUMPY.rand() + PYTHON.random() + SYSTEM.random() + random.random() + np.random.rand()
    return x * number + torch.rand(1) + torch.rand(1, generator=TORCH)


fx.wrap("_do_all")


class Leaf(nn.Module):
    """A module that stays one node of a graph."""

    calls = 0

    def forward(self, x: Tensor) -> Tensor:
        Leaf.calls += 1
        return _do_all(x)


def _outside() -> str:
    bits = (NUMPY.bit_generator.state, OLD_NUMPY.get_state(), np.random.get_state())
    generators = (PYTHON.getstate(), random.getstate(), TORCH.get_state().tolist(), torch.get_rng_state().tolist())
    return repr((LOG, COUNT, Leaf.calls, ARRAY, THINGS, bits, generators))


def _calls(x: Tensor) -> Tensor:
    return F.gelu(_do_all(x) + x)


def _of_leaves() -> fx.GraphModule:
    graph = fx.Graph()
    graph.output(graph.call_module("0", (graph.placeholder("x"),)))
    return fx.GraphModule(nn.Sequential(Leaf()), graph)


PROGRAMS: dict[str, Callable[[], Any]] = {
    "wrapped": lambda: _calls,
    "traced into": lambda: Leaf(),
    "graph": lambda: fx.symbolic_trace(_calls),
    "captured": lambda: capture(_calls),
    "leaf module": _of_leaves,
}


@pytest.mark.filterwarnings("ignore:fuse. the graph of torch.fx does not do all")
@pytest.mark.parametrize("check", [True, False])
@pytest.mark.parametrize("name", PROGRAMS)
def test_variables_and_generators_outside_are_as_before(name: str, check: bool) -> None:
    program = PROGRAMS[name]()
    before = _outside()
    fuse(program, (X,), check=check)
    assert _outside() == before
    program(X)
    assert _outside() != before  # the program does change them
