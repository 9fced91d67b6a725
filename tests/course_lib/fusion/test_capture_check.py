"""Fusing a module says what the capture lost, and leaves model, tensors and random numbers alone."""

import random
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from course_lib.fusion import fuse

LOG: list[int] = []
ARRAY, NUMPY, PYTHON, TORCH = np.zeros(3), np.random.default_rng(1), random.Random(1), torch.Generator()
WEIGHT = nn.Parameter(torch.ones(4))
X = torch.randn(3, 4, generator=torch.Generator().manual_seed(1))


class Model(nn.Module):
    """A layer, a buffer, a dropout and a counter, for a function of them and the input."""

    def __init__(self, run: Callable[[Any, Tensor], Tensor]) -> None:
        super().__init__()
        self.linear, self.drop, self.norm = nn.Linear(4, 4), nn.Dropout(0.5), nn.BatchNorm1d(4)
        self.register_buffer("seen", torch.zeros(1))
        self.calls, self.counts, self.chance = 0, np.zeros(2), np.random.RandomState(1)
        self.run = run

    def forward(self, x: Tensor) -> Tensor:
        return self.run(self, x)


class Rounded(torch.autograd.Function):
    """Round, with a gradient of three."""

    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        return x.round()

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> Tensor:
        return gradient * 3


def _no_grad(self: Any, x: Tensor) -> Tensor:
    with torch.no_grad():
        return self.linear(x) * 2


def _inference(self: Any, x: Tensor) -> Tensor:
    with torch.inference_mode():
        return self.linear(x) * 2


def _autocast(self: Any, x: Tensor) -> Tensor:
    with torch.autocast("cpu", torch.bfloat16):
        return self.linear(x)


def _prints(self: Any, x: Tensor) -> Tensor:
    print("called")
    return self.linear(x)


def _counts(self: Any, x: Tensor) -> Tensor:
    self.calls += 1
    return self.linear(x)


def _logs(self: Any, x: Tensor) -> Tensor:
    LOG.append(1)
    return self.linear(x)


def _branches(self: Any, x: Tensor) -> Tensor:
    return self.linear(x) * (2 if self.training else 1)


def _drops(self: Any, x: Tensor) -> Tensor:
    return F.dropout(self.linear(x), 0.5, self.training)


def _draws(self: Any, x: Tensor) -> Tensor:
    return self.linear(x) + torch.rand(4)


def _writes_a_buffer(self: Any, x: Tensor) -> Tensor:
    self.seen.add_(1)
    return self.linear(x) + self.seen


def _scales_a_buffer_of_zeros(self: Any, x: Tensor) -> Tensor:
    self.seen.mul_(0.9).add_(x.detach().mean())  # of the two writes, torch.fx records the second
    return self.linear(x) + self.seen


def _fills(self: Any, x: Tensor) -> Tensor:
    h = torch.zeros(3, 4)
    h.add_(x)
    return h * 2


def _adds_in_place(self: Any, x: Tensor) -> Tensor:
    x += 1
    return self.linear(x)


def _rounds(self: Any, x: Tensor) -> Tensor:
    return Rounded.apply(self.linear(x))


def _draws_with_numpy(self: Any, x: Tensor) -> Tensor:
    return self.linear(x) * np.random.rand()


def _draws_with_python(self: Any, x: Tensor) -> Tensor:
    return self.linear(x) * random.random()


def _draws_with_a_generator_of_numpy(self: Any, x: Tensor) -> Tensor:
    return self.linear(x) * NUMPY.random()


def _draws_with_a_generator_of_python(self: Any, x: Tensor) -> Tensor:
    return self.linear(x) * PYTHON.random()


def _draws_with_a_generator_of_torch(self: Any, x: Tensor) -> Tensor:
    return self.linear(x) * torch.rand(4, generator=TORCH)


def _draws_with_its_own_generator(self: Any, x: Tensor) -> Tensor:
    return self.linear(x) * self.chance.rand()


def _writes_an_array(self: Any, x: Tensor) -> Tensor:
    ARRAY[1] += 1
    return self.linear(x)


def _writes_its_own_array(self: Any, x: Tensor) -> Tensor:
    self.counts[0] += 1
    return self.linear(x)


def _asks_for_gradients(self: Any, x: Tensor) -> Tensor:
    return self.linear(x) * (2 if torch.is_grad_enabled() else 3)


def _computes_on_a_buffer(self: Any, x: Tensor) -> Tensor:
    return self.linear(x) * (self.seen.exp() + 1)


def _computes_on_parts_of_a_buffer(self: Any, x: Tensor) -> Tensor:
    return self.linear(x) + torch.cat([self.norm.running_var[:2], self.seen, self.seen])


def _reads_a_number_of_a_buffer(self: Any, x: Tensor) -> Tensor:
    return self.linear(x) * (2 if self.seen > 0 else 3)


def _computes_on_a_parameter_by_name(self: Any, x: Tensor) -> Tensor:
    return self.linear(x) * dict(self.named_parameters())["linear.bias"].detach().exp()


def _computes_on_a_parameter_outside(self: Any, x: Tensor) -> Tensor:
    return self.linear(x) * WEIGHT.exp()


OTHER_DRAWS = "outside of the program, is left otherwise than by the program (another random state)"
FIXED = "while the program is traced, so later changes of it do not reach the graph"
LOST: dict[Callable[[Any, Tensor], Tensor], str] = {
    _no_grad: "the gradient of linear.weight is there, where the program has none",
    _inference: "the result has a gradient function",
    _autocast: "the result has float32 in place of bfloat16",
    _prints: "it prints '' where the program prints 'called\\n'",
    _counts: "the attribute calls is left otherwise than by the program (0 in place of 1)",
    _logs: "LOG, outside of the program, is left otherwise than by the program (0 parts in place of 1)",
    _branches: "in evaluation mode, the result is off by",
    _drops: "in evaluation mode, the result is off by",
    _draws: "it draws other random numbers than the program",
    _writes_a_buffer: "the attribute seen is left otherwise than by the program (off by 1)",
    _scales_a_buffer_of_zeros: "aten.mul_.Tensor writes to seen while the program is traced, not when the graph runs",
    _fills: "the graph writes to _tensor_constant0, a tensor that the program makes anew in each call",
    _adds_in_place: "the inputs are left otherwise than by the program (off by 1)",
    _rounds: "the gradient of linear.weight is off by",
    _draws_with_numpy: "it draws other random numbers than the program",
    _draws_with_python: "it draws other random numbers than the program",
    _draws_with_a_generator_of_numpy: f"NUMPY, {OTHER_DRAWS}",
    _draws_with_a_generator_of_python: f"PYTHON, {OTHER_DRAWS}",
    _draws_with_a_generator_of_torch: f"TORCH, {OTHER_DRAWS}",
    _draws_with_its_own_generator: "the attribute chance is left otherwise than by the program (another random state)",
    _writes_an_array: "ARRAY, outside of the program, is left otherwise than by the program (0.0 in place of 1.0)",
    _writes_its_own_array: "the attribute counts is left otherwise than by the program (0.0 in place of 1.0)",
    _asks_for_gradients: "without gradients recorded, the result is off by",
    _computes_on_a_buffer: f"operators compute on seen {FIXED}",
    _computes_on_parts_of_a_buffer: f"operators compute on norm.running_var {FIXED}",
    _reads_a_number_of_a_buffer: f"a number of seen is read {FIXED}",
    _computes_on_a_parameter_by_name: f"operators compute on linear.bias {FIXED}",
    _computes_on_a_parameter_outside: f"operators compute on WEIGHT {FIXED}",
}


def _states_of_numpy_and_python() -> str:
    return repr((np.random.get_state(), NUMPY.bit_generator.state, PYTHON.getstate(), random.getstate()))


@pytest.mark.parametrize("program", LOST, ids=lambda one: one.__name__)
def test_what_a_capture_loses_is_said_and_nothing_is_changed(program: Callable[[Any, Tensor], Tensor]) -> None:
    model, x = Model(program), X.clone()
    before = {name: value.clone() for name, value in model.state_dict().items()}
    random_states = _states_of_numpy_and_python()
    random_state = torch.get_rng_state()
    with pytest.warns(UserWarning, match="does not do all that the program does"):
        result = fuse(model, (x,))
    assert any(text.startswith(LOST[program]) for text in result.lost), result.lost
    assert LOST[program] in result.explain()
    assert "lost by the capture" in str(result)
    assert all(torch.equal(value, before[name]) for name, value in model.state_dict().items())
    assert torch.equal(torch.get_rng_state(), random_state)
    assert (
        repr((np.random.get_state(), NUMPY.bit_generator.state, PYTHON.getstate(), random.getstate())) == random_states
    )
    assert (ARRAY.sum(), model.counts.sum()) == (0, 0)
    assert torch.equal(x, X)
    assert (model.calls, model.training, LOG, x.requires_grad) == (0, True, [], False)
    assert all(parameter.grad is None for parameter in model.parameters())


HONEST: tuple[Callable[[Any, Tensor], Tensor], ...] = (
    lambda self, x: self.drop(F.gelu(self.linear(x))),
    lambda self, x: self.norm(torch.relu(self.linear(x))),
    lambda self, x: x.add_(1) * self.linear(x),
    lambda self, x: self.linear(x).t(),
    lambda self, x: torch.rand_like(x) * self.linear(x),
    lambda self, x: self.linear(x) * self.seen + self.norm.running_var[1:2],
    lambda self, x: self.linear(x) * torch.ones(4).cumsum(0) if self.seen.numel() else x,
)


@pytest.mark.parametrize("program", HONEST, ids=range(len(HONEST)))
def test_a_capture_that_loses_nothing_is_not_warned_of(program: Callable[[Any, Tensor], Tensor]) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        assert fuse(Model(program), (X,)).lost == ()
        assert "On the example" not in fuse(Model(program), (X,)).explain()


class Packed(nn.Module):
    """A layer of integers, whose weight an operator from outside of ATen unpacks while the program is traced."""

    def __init__(self) -> None:
        super().__init__()
        self.packed = torch.ao.nn.quantized.dynamic.Linear(4, 4)

    def forward(self, x: Tensor) -> Tensor:
        return x @ self.packed.weight().dequantize()


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_unpacking_a_quantized_weight_draws_no_random_numbers() -> None:
    assert fuse(Packed(), (X,)).lost == ()


def test_the_check_can_be_left_out_and_is_not_made_for_graphs() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        assert fuse(Model(_no_grad), (X,), check=False).lost == ()
        graph = fuse(Model(_no_grad), (X,), (), check=False).graph_module
        assert fuse(graph, (X,)).lost == ()


def test_a_function_is_checked_too_and_gradients_only_where_they_are_recorded() -> None:
    with pytest.warns(UserWarning, match="gradient of input 0"):
        assert fuse(lambda x: Rounded.apply(x) * 2, (X,)).lost
    with torch.no_grad(), warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        assert fuse(lambda x: Rounded.apply(x) * 2, (X,)).lost == ()
    with torch.no_grad(), pytest.warns(UserWarning, match="with gradients recorded, the result is off by"):
        assert fuse(lambda x: x * (2 if torch.is_grad_enabled() else 3), (X,)).lost
