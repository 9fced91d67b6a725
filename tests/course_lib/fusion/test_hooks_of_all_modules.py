"""Hooks that are registered for all modules run after fusing as before: no module call that they see is replaced."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.nn.modules import module as of_all

from course_lib.errors import GraphError, ScheduleError
from course_lib.fusion import fuse
from course_lib.graph.data import to_data
from course_lib.schedule import create_schedule

REGISTER: dict[str, Callable[[Any], Any]] = {
    "forward": of_all.register_module_forward_hook,
    "forward_pre": of_all.register_module_forward_pre_hook,
    "backward": of_all.register_module_full_backward_hook,
    "backward_pre": of_all.register_module_full_backward_pre_hook,
}
SEEN: list[str] = []
X = torch.randn(3, 4, generator=torch.Generator().manual_seed(1))


class Block(nn.Module):
    """The end of a block of a transformer."""

    def __init__(self) -> None:
        super().__init__()
        self.linear, self.drop, self.norm = nn.Linear(4, 4), nn.Dropout(0.1), nn.LayerNorm(4)

    def forward(self, x: Tensor) -> Tensor:
        return self.norm(self.drop(self.linear(x)) + x)


def _note(module: nn.Module, *_: object) -> None:
    SEEN.append(type(module).__name__)


@pytest.fixture(params=REGISTER)
def _hooked(request: pytest.FixtureRequest) -> Iterator[None]:
    handle = REGISTER[request.param](_note)
    yield
    handle.remove()
    SEEN.clear()


def _types_seen(module: nn.Module) -> set[str]:
    SEEN.clear()
    module(X.clone().requires_grad_()).sum().backward()
    return {*SEEN} - {type(module).__name__}


@pytest.mark.usefixtures("_hooked")
@pytest.mark.parametrize("passes", [None, ["normalise", "bias_dropout_residual_layer_norm"]], ids=["default", "named"])
def test_modules_that_a_hook_sees_stay_modules(passes: list[str] | None) -> None:
    model = Block()
    result = fuse(model, (X,), passes)
    assert SEEN == []
    assert result.lost == ()
    assert _types_seen(model) == _types_seen(result.graph_module) == {"Linear", "Dropout", "LayerNorm"}
    assert any(one.rule == "hooks" for one in result.rejected)


@pytest.mark.usefixtures("_hooked")
def test_functions_are_fused_all_the_same() -> None:
    assert fuse(lambda x, b: F.gelu(x + b), (X, X[0])).num_matches == 1


@pytest.mark.usefixtures("_hooked")
def test_a_module_that_was_traced_into_is_said_to_be_lost() -> None:
    with pytest.warns(UserWarning, match="SEEN, outside of the program, is left otherwise"):
        assert fuse(nn.Sequential(Block()), (X,)).lost


@pytest.mark.usefixtures("_hooked")
def test_a_graph_with_modules_is_not_written_as_data() -> None:
    gm = fuse(Block(), (X,), ()).graph_module
    with pytest.raises(GraphError, match="hooks"):
        to_data(gm)


@pytest.mark.usefixtures("_hooked")
def test_a_schedule_refuses_only_what_a_hook_would_no_longer_see() -> None:
    schedule = create_schedule(nn.Sequential(Block(), nn.Linear(4, 4), nn.ReLU()))
    schedule["1"].decompose()
    schedule["2"].replace(nn.GELU())
    with pytest.raises(ScheduleError, match=r"lose the hooks of 0;"):
        schedule.trace()
    schedule["0"].trace()


def test_without_such_hooks_the_block_is_fused() -> None:
    assert fuse(Block(), (X,)).num_matches > 0
