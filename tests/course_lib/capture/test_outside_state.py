"""State outside of a program is found by reading its code, and restored."""

import random
from collections import Counter, deque
from types import SimpleNamespace
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, fx, nn

from course_lib.capture.outside_state import restore_outside, tensors_of, values_of, variables_of
from course_lib.fusion import PASSES

LIST: list[int] = [1]
QUEUE = deque([1])
COUNTS = Counter({"a": 1})
SPACE = SimpleNamespace(calls=0)
TENSOR = torch.tensor([1.0, float("nan")])
LAYER = nn.Linear(2, 2)
CHANCE = random.Random(3)
NUMBER = 0


class Kept:
    """An object of the user's with a counter, and one that belongs to the class."""

    total = 0

    def __init__(self) -> None:
        self.calls = 0

    def call(self) -> None:
        self.calls += 1
        Kept.total += 1


KEPT = Kept()


def _indirectly() -> None:
    QUEUE.append(2)
    COUNTS["a"] += 1


def _program(seen: dict[str, int]) -> Any:
    inside = 0

    def program(x: Tensor, default: list[int] = []) -> Tensor:  # noqa: B006  # what is kept in it is tested
        nonlocal inside
        global NUMBER, MADE
        inside, NUMBER, MADE = inside + 1, NUMBER + 1, 1
        LIST.append(2)
        _indirectly()
        default.append(1)
        seen["calls"] = inside
        SPACE.calls += 1
        KEPT.call()
        TENSOR.add_(1)
        LAYER(x).sum().backward()
        CHANCE.random()
        return x * inside

    return program


def _state(program: Any, seen: dict[str, int]) -> tuple[Any, ...]:
    cells = [cell.cell_contents for cell in program.__closure__]
    kept = (KEPT.calls, Kept.total, SPACE.calls, NUMBER, "MADE" in globals())
    return (
        list(LIST), list(QUEUE), dict(COUNTS), dict(seen), program.__defaults__, str(cells), str(TENSOR),
        LAYER.weight.grad is None, CHANCE.getstate(), *kept,
    )  # fmt: skip


def test_all_that_a_program_changes_outside_of_itself_is_restored() -> None:
    seen: dict[str, int] = {}
    program = _program(seen)
    before = repr(_state(program, seen))
    variables, names = variables_of(program)
    restore = restore_outside(variables)
    for _ in range(2):
        program(torch.ones(1, 2))
        assert repr(_state(program, seen)) != before
        restore()
        assert repr(_state(program, seen)) == before
    assert {"LIST", "QUEUE", "SPACE", "KEPT", "inside", "NUMBER", "Kept.total"} <= values_of(variables).keys()
    assert {"TENSOR", "LAYER.weight", "LAYER.bias"} <= tensors_of(variables).keys()
    assert "random" in names


def test_code_of_installed_packages_and_of_the_library_is_not_searched() -> None:
    fused = PASSES["bias_gelu"]().call(fx.symbolic_trace(lambda x, b: F.gelu(x + b))).graph_module
    for program in (nn.Sequential(nn.Linear(2, 2), nn.MultiheadAttention(2, 1)), fused):
        assert variables_of(program)[0] == ()
