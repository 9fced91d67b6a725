"""A search returns the cheapest configuration that fits and is right; wrong and failing ones are told, never taken."""

import importlib
from collections.abc import Callable
from functools import cache

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from course_lib.errors import ScheduleError
from course_lib.kernels import bias_gelu
from course_lib.schedule import Choice, Schedule, SearchResult, create_schedule, search, verify
from course_lib.schedule.search import count_step

Tensor = torch.Tensor
ROWS = torch.randn(64, 8, generator=torch.Generator().manual_seed(0))
FAST = {"dtypes": (torch.float64,)}


class Block(nn.Module):
    """Three layers that save much for their backward pass."""

    def __init__(self) -> None:
        super().__init__()
        self.up, self.act, self.down = nn.Linear(8, 16), nn.GELU(), nn.Linear(16, 8)

    def forward(self, x: Tensor) -> Tensor:
        return self.down(self.act(self.up(x)).sin()) + x


def _model(blocks: int = 2) -> nn.Sequential:
    torch.manual_seed(0)
    return nn.Sequential(*(Block() for _ in range(blocks)))


def _fuse(path: str) -> Callable[[Schedule], object]:
    def fuse(schedule: Schedule) -> None:
        schedule[f"{path}.up"].decompose()
        part = schedule[path].trace()
        part.fuse(part.find(lambda x, bias: F.gelu(x + bias)), compiler=bias_gelu)

    return fuse


def _checkpoint(path: str) -> Callable[[Schedule], object]:
    return lambda schedule: schedule[path].checkpoint()


def _choices(blocks: int = 2) -> list[Choice]:
    return [
        choice
        for path in map(str, range(blocks))
        for choice in (
            Choice(f"gelu {path}", {"fused": _fuse(path)}),
            Choice(f"block {path}", {"checkpoint": _checkpoint(path)}),
        )
    ]


@cache
def _everything() -> SearchResult:
    return search(_model(), _choices(), (ROWS,), **FAST)


def test_without_a_limit_all_that_saves_traffic_is_fused_and_nothing_is_computed_twice() -> None:
    result = _everything()
    assert result.best.options == {"gelu 0": "fused", "block 0": "-", "gelu 1": "fused", "block 1": "-"}
    assert len(result.candidates) == result.configurations == 16
    assert all(one.bytes_moved >= result.best.bytes_moved for one in result.candidates)
    assert "16 of 16 configurations tried" in str(result)
    assert verify(result.schedule, (ROWS,)).passed


def test_under_a_limit_only_the_block_whose_checkpoint_helps_is_checkpointed() -> None:
    free = _everything().best
    result = search(_model(), _choices(), (ROWS,), memory_limit_bytes=free.memory_bytes - 1, **FAST)
    assert result.best.options == {"gelu 0": "fused", "block 0": "checkpoint", "gelu 1": "fused", "block 1": "-"}
    assert result.best.memory_bytes < free.memory_bytes
    assert result.best.bytes_moved > free.bytes_moved
    rows = str(result.table()).splitlines()[2:]
    assert rows[0].endswith("the best")
    assert rows[-1].endswith("needs too much memory")


def test_a_candidate_has_the_counts_of_its_model() -> None:
    model, result = _model(), _everything()
    for one in result.candidates[:3]:
        assert one.schedule is not None
        assert (one.launches, one.bytes_moved, one.memory_bytes) == count_step(one.schedule.build(), (ROWS,))
    by_hand = create_schedule(model)
    by_hand["0"].checkpoint()
    counted = count_step(by_hand.build(), (ROWS,))
    assert counted in [(one.launches, one.bytes_moved, one.memory_bytes) for one in result.candidates]
    assert counted[0] > count_step(model, (ROWS,))[0]


def test_the_model_is_as_it_was() -> None:
    model = _model().eval()
    model[0].up.weight.grad = torch.ones(16, 8)
    before = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    torch.manual_seed(7)
    state = torch.get_rng_state()
    search(model, _choices(1), (ROWS,), **FAST)
    assert torch.equal(model[0].up.weight.grad, torch.ones(16, 8))
    assert model[0].down.weight.grad is None
    assert not model.training
    assert torch.equal(torch.get_rng_state(), state)
    assert all(torch.equal(tensor, before[name]) for name, tensor in model.state_dict().items())


@pytest.mark.parametrize("limited", [False, True])
def test_many_configurations_are_searched_by_a_beam_which_finds_what_is_best(limited: bool) -> None:
    everything = _everything()
    smallest = min(one.memory_bytes for one in everything.candidates)
    limit = (smallest + everything.best.memory_bytes) // 2 if limited else None
    fitting = [one for one in everything.candidates if limit is None or one.memory_bytes <= limit]
    result = search(_model(), _choices(), (ROWS,), memory_limit_bytes=limit, max_exhaustive=15, beam=1, **FAST)
    assert len(result.candidates) < 12
    assert f"{len(result.candidates)} of 16 configurations tried" in str(result)
    assert result.best.bytes_moved == min(one.bytes_moved for one in fitting)
    assert limit is None or result.best.memory_bytes <= limit


def _relu(schedule: Schedule) -> None:
    part = schedule["0"].trace()
    part.replace(torch.relu, part.find(lambda x: F.gelu(x)))


def test_what_computes_something_else_or_fails_is_told_and_not_taken() -> None:
    cheaper = [Choice("activation", {"relu": _relu}), Choice("part", {"missing": lambda schedule: schedule["7"]})]
    result = search(_model(), cheaper, (ROWS,), **FAST)
    assert result.best.options == {"activation": "-", "part": "-"}
    problems = {str(one): one.problem for one in result.candidates}
    assert problems["the model as it is"] == ""
    assert problems["activation: relu"].startswith("computes something else: FAIL eval, float64")
    assert problems["part: missing"].startswith("part: ScheduleError: There is no part '7'")


def test_the_goal_decides_what_is_best() -> None:
    def together(schedule: Schedule) -> None:
        schedule["2"].replace(_Together())

    model = nn.Sequential(nn.Linear(8, 8), nn.Tanh(), _Apart())
    choices = [Choice("sum", {"as a product": together})]
    launches = search(model, choices, (ROWS,), minimise="launches", **FAST).best
    traffic = search(model, choices, (ROWS,), **FAST).best
    assert launches.launches < traffic.launches
    assert launches.bytes_moved > traffic.bytes_moved


class _Apart(nn.Module):
    """Scale rows part by part: five launches."""

    def forward(self, x: Tensor) -> Tensor:
        return torch.cat([x[:1] * 2, x[1:2] * 3, x[2:] * 1])


class _Together(nn.Module):
    """Scale rows by a square matrix: fewer launches, more bytes."""

    def forward(self, x: Tensor) -> Tensor:
        factors = torch.diag(torch.cat([x.new_tensor([2.0, 3.0]), x.new_ones(len(x) - 2)]))
        return factors @ x


MODEL = _model(1)
CHOICE = _choices(1)[0]
MISTAKES: dict[str, tuple[tuple[object, ...], dict[str, object], str]] = {
    "no module": ((len, [CHOICE], (ROWS,)), {}, "expects a torch.nn.Module and a tuple"),
    "one tensor": ((MODEL, [CHOICE], ROWS), {}, "expects a torch.nn.Module and a tuple"),
    "no choices": ((MODEL, [], (ROWS,)), {}, "expects a list of them, each a Choice"),
    "no list": ((MODEL, CHOICE, (ROWS,)), {}, "expects a list of them"),
    "no Choice": ((MODEL, [CHOICE, _fuse("0")], (ROWS,)), {}, "each a Choice with a name of its own"),
    "twice": ((MODEL, [CHOICE, CHOICE], (ROWS,)), {}, "each a Choice with a name of its own"),
    "goal": ((MODEL, [CHOICE], (ROWS,)), {"minimise": "time"}, "knows 'bytes_moved' and 'launches'"),
    "limit": ((MODEL, [CHOICE], (ROWS,)), {"memory_limit_bytes": 0}, "above 0"),
    "limit in words": ((MODEL, [CHOICE], (ROWS,)), {"memory_limit_bytes": "2 MB"}, "expects a number of bytes"),
    "too small": (
        (MODEL, [CHOICE], (ROWS,)),
        {"memory_limit_bytes": 10},
        "none fits in 10 bytes: the smallest",
    ),
}


@pytest.mark.parametrize("case", MISTAKES)
def test_what_cannot_be_searched_is_refused_in_one_sentence(case: str) -> None:
    given, options, says = MISTAKES[case]
    with pytest.raises(ScheduleError, match=says):
        search(*given, **options)  # type: ignore[arg-type]


def test_if_no_configuration_is_right_the_search_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    flips = nn.Sequential(nn.Linear(8, 8))
    module = importlib.import_module("course_lib.schedule.search")  # whose name in the package is the function's
    monkeypatch.setattr(module, "create_schedule", lambda model: _broken(flips))
    with pytest.raises(ScheduleError, match="none computes what the model computes"):
        search(flips, [Choice("nothing", {"more": lambda schedule: schedule})], (ROWS,), **FAST)


def _broken(model: nn.Module) -> Schedule:
    schedule = create_schedule(model)
    schedule["0"].replace(_Negated(model[0]))
    return schedule


class _Negated(nn.Module):
    def __init__(self, old: nn.Module) -> None:
        super().__init__()
        self.weight, self.bias = old.weight, old.bias

    def forward(self, x: Tensor) -> Tensor:
        return -F.linear(x, self.weight, self.bias)


def test_options_are_functions_by_name() -> None:
    for options in ({}, {"-": _relu}, {"fused": "fuse"}):
        with pytest.raises(ScheduleError, match="expects functions of a schedule"):
            Choice("activation", options)  # type: ignore[arg-type]
