"""For which inputs and which later changes a fused graph is right, as the docstring of `fuse` says."""

from collections.abc import Callable

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from course_lib.fusion import fuse

Inputs = tuple[Tensor, Tensor, Tensor]
Program = Callable[[Tensor, Tensor, Tensor], Tensor]


def _numbers(*shape: int) -> Tensor:
    return torch.arange(1.0, 1 + torch.Size(shape).numel()).reshape(shape) / 7


def _apart() -> Inputs:
    return _numbers(3, 4), _numbers(3, 4) * 2, torch.ones(4)


def _one_tensor() -> Inputs:
    x = _numbers(3, 4)
    return x, x, torch.ones(4)


def _views() -> Inputs:
    x = _numbers(4, 4)
    return x[:3], x[1:], torch.ones(4)


def _transposed() -> Inputs:
    return _numbers(4, 3).t(), _numbers(3, 4, 2)[..., 0], torch.ones(8)[::2]


def _expanded() -> Inputs:
    return _numbers(4).expand(3, 4), _numbers(3, 1).expand(3, 4), torch.ones(1).expand(4)


def _writes_after_the_sum(x: Tensor, y: Tensor, b: Tensor) -> Tensor:
    h = x + b
    y.mul_(2)
    return F.gelu(h) + x


def _writes_between_equal_parts(x: Tensor, y: Tensor, b: Tensor) -> Tensor:
    product = x * b
    y.add_(1)
    return product + x * b


def _writes_what_may_be_a_view(x: Tensor, y: Tensor, b: Tensor) -> Tensor:
    flat, h = x.reshape(-1), x + b
    flat.add_(1)
    return F.gelu(h)


def _writes_nothing(x: Tensor, y: Tensor, b: Tensor) -> Tensor:
    h = F.layer_norm(F.gelu(x + b) + y, (4,), b, b)
    return torch.relu(h) + x * b + x * b


WRITING = (_writes_after_the_sum, _writes_between_equal_parts, _writes_what_may_be_a_view)


def _is_right(program: Program, example: Callable[[], Inputs], inputs: Callable[[], Inputs]) -> bool:
    result = fuse(program, example())
    given, expected = inputs(), inputs()
    found, wanted = result.graph_module(*given), program(*expected)
    return all(map(torch.allclose, (found, *given), (wanted, *expected)))


@pytest.mark.parametrize("inputs", [_one_tensor, _views, _transposed])
@pytest.mark.parametrize("program", WRITING)
def test_a_program_that_writes_is_right_for_memory_laid_out_as_in_the_example(
    program: Program, inputs: Callable[[], Inputs]
) -> None:
    assert _is_right(program, inputs, inputs)


def test_a_program_that_writes_may_be_wrong_for_memory_that_the_example_did_not_share() -> None:
    assert not _is_right(_writes_after_the_sum, _apart, _one_tensor)
    assert not _is_right(_writes_what_may_be_a_view, _transposed, _apart)


@pytest.mark.parametrize("inputs", [_apart, _one_tensor, _views, _transposed, _expanded])
def test_a_program_that_writes_nothing_is_right_for_all_strides_and_shared_memory(
    inputs: Callable[[], Inputs],
) -> None:
    assert fuse(_writes_nothing, _apart()).num_matches >= 2
    assert _is_right(_writes_nothing, _apart, inputs)


class Block(nn.Module):
    """The end of a block of a transformer."""

    def __init__(self) -> None:
        super().__init__()
        self.drop, self.norm = nn.Dropout(0.0), nn.LayerNorm(4)

    def forward(self, x: Tensor, y: Tensor, b: Tensor) -> Tensor:
        return self.norm(self.drop(x + b) + y)


def test_numbers_of_fused_modules_are_fixed_and_parameters_are_not() -> None:
    model = Block()
    result = fuse(model, _apart())
    assert result.num_matches == 1
    expected = model(*_apart())
    model.drop.p, model.norm.eps = 1.0, 5.0
    torch.testing.assert_close(result.graph_module(*_apart()), expected)
    with torch.no_grad():
        model.norm.weight.mul_(2)
    torch.testing.assert_close(result.graph_module(*_apart()), expected * 2)
