"""A module that stays one node blocks what it may change, and nothing else."""

from collections.abc import Callable

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from course_lib.schedule import call_module, create_schedule


class Leaf(nn.Module):
    """Code from outside of PyTorch, which may write to its operand and to what it holds."""

    def __init__(self, held: Tensor | None = None) -> None:
        super().__init__()
        self.held = held

    def forward(self, x: Tensor) -> Tensor:
        """Return a tensor of the same shape."""
        return torch.sigmoid(x)


class Model(nn.Module):
    """Two sums with GELU; `program` says what the leaf reads, and where it stands."""

    def __init__(self, program: Callable[["Model", Tensor], Tensor], holds: bool) -> None:
        super().__init__()
        self.program, self.bias = program, nn.Parameter(torch.zeros(4))
        self.leaf = Leaf(self.bias if holds else None)

    def forward(self, x: Tensor) -> Tensor:
        """Run the program."""
        return self.program(self, x)

    def of_leaf(self, x: Tensor) -> Tensor:
        """Return the result of the leaf."""
        result: Tensor = self.leaf(x)
        return result


def _in_between(model: Model, x: Tensor) -> Tensor:
    total = torch.exp(x) + model.bias
    other = model.of_leaf(x)
    return F.gelu(total) * other


def _on_the_operand(model: Model, x: Tensor) -> Tensor:
    y = torch.exp(x)
    return F.gelu(y + model.bias) * model.of_leaf(y)


def _on_a_view(model: Model, x: Tensor) -> Tensor:
    y = torch.exp(x)
    return F.gelu(y + model.bias) * model.of_leaf(y.transpose(0, 1)).transpose(0, 1)


def _on_what_dropout_returns(model: Model, x: Tensor) -> Tensor:
    y = torch.exp(x)
    return F.gelu(y + model.bias) * model.of_leaf(F.dropout(y, 0.5, False))


def _on_the_result(model: Model, x: Tensor) -> Tensor:
    return model.of_leaf(F.gelu(torch.exp(x) + model.bias))


PROGRAMS: dict[str, tuple[Callable[[Model, Tensor], Tensor], bool, list[str]]] = {
    "between the matched operators": (_in_between, False, ["unobserved"]),
    "on an operand": (_on_the_operand, False, ["mutation"]),
    "on a view of an operand": (_on_a_view, False, ["mutation"]),
    "on the operand that a dropout may return": (_on_what_dropout_returns, False, ["mutation"]),
    "on the result, and it holds an operand": (_on_the_result, True, ["mutation"]),
    "on the result": (_on_the_result, False, []),
}


@pytest.mark.parametrize("case", PROGRAMS)
def test_a_leaf_blocks_only_what_it_can_reach(case: str) -> None:
    program, holds, rules = PROGRAMS[case]
    part = create_schedule(Model(program, holds)).trace(leaf_modules=(Leaf,))
    matches = part.find(lambda x, bias: F.gelu(x + bias))
    assert [refusal.rule for refusal in matches.rejected] == rules
    assert len(matches) == 1 - len(rules)


def test_leaves_that_are_matched_by_name_do_not_block_each_other() -> None:
    model = Model(lambda one, x: one.of_leaf(torch.exp(one.of_leaf(x + one.bias)) + one.bias), False)
    matches = create_schedule(model).trace(leaf_modules=(Leaf,)).find(lambda x, bias: call_module("leaf", x + bias))
    assert [refusal.reason for refusal in matches.rejected] == []
    assert len(matches) == 2
