"""Bias, dropout, residual and LayerNorm become one operator, in training and in evaluation."""

import copy
import pickle

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from course_lib.fusion import fuse
from course_lib.graph import count_operators
from tests.course_lib.fusion.passes.rewrites import fused, left_alone, normal, same

NAME = "bias_dropout_residual_layer_norm"
FUSED = f"torch.ops.course_lib.{NAME}"
MODULE = "BiasDropoutResidualLayerNorm"
Tensor = torch.Tensor
INPUTS = (normal(5, 6), normal(5, 6) * 2)


class Block(nn.Module):
    """The end of half a Transformer layer, with its parts as modules."""

    def __init__(self, p: float = 0.4) -> None:
        super().__init__()
        self.dense = nn.Linear(6, 6)
        self.bias = nn.Parameter(torch.randn(6))
        self.dropout = nn.Dropout(p)
        self.norm = nn.LayerNorm(6)

    def forward(self, x: Tensor, residual: Tensor) -> Tensor:
        return self.norm(self.dropout(x + self.bias) + residual)


class AfterLinear(Block):
    def forward(self, x: Tensor, residual: Tensor) -> Tensor:
        return self.norm(residual + self.dropout(self.dense(x)))


class Functional(Block):
    def forward(self, x: Tensor, residual: Tensor) -> Tensor:
        dropped = F.dropout(torch.add(self.bias, x), 0.4, training=self.training)
        return F.layer_norm(dropped + residual, (6,), self.norm.weight, self.norm.bias, 1e-4)


class Evaluation(Block):
    def forward(self, x: Tensor, residual: Tensor) -> Tensor:
        return self.norm((x + self.bias) + residual)


@pytest.mark.parametrize(("build", "call"), [(Block, MODULE), (AfterLinear, MODULE), (Evaluation, FUSED)])
def test_it_fires_and_computes_the_same_in_both_modes(build: type[Block], call: str) -> None:
    program = build()
    result = fused(program, INPUTS, NAME)
    assert count_operators(result.graph_module)[call] == 1
    assert result.cost_after.bytes_moved < result.cost_before.bytes_moved  # type: ignore[union-attr]
    same(program, result, INPUTS, dtypes=(torch.float64, torch.float32, torch.bfloat16))


@pytest.mark.parametrize("p", [0, 0.0, 0.9, 1, 1.0])
def test_every_probability_computes_the_same(p: float) -> None:
    program = Block(p)
    same(program, fused(program, INPUTS, NAME), INPUTS)


@pytest.mark.parametrize("mode", ["train", "eval"])
def test_a_flag_that_is_written_down_stays_written_down(mode: str) -> None:
    program = Functional().train(mode == "train")
    result = fused(program, INPUTS, NAME)
    assert count_operators(result.graph_module) == {FUSED: 1}
    same(program, result, INPUTS, modes=(mode,))


def test_the_fused_graph_follows_train_and_eval() -> None:
    program = Block(p=0.5)
    graph = fuse(program, INPUTS).graph_module
    torch.manual_seed(0)
    assert not torch.equal(graph(*INPUTS), graph(*INPUTS))
    assert torch.equal(graph.eval()(*INPUTS), graph(*INPUTS))
    copied = pickle.loads(pickle.dumps(graph))
    assert torch.equal(copied(*INPUTS), graph(*INPUTS))
    assert not torch.equal(copied.train()(*INPUTS), graph(*INPUTS))


def test_the_program_is_untouched_and_old_checkpoints_load() -> None:
    program = AfterLinear()
    before = copy.deepcopy(program.state_dict())
    graph = fuse(program, INPUTS).graph_module
    assert {name for name, _ in program.named_modules()} == {"", "dense", "dropout", "norm"}
    assert {id(p) for p in graph.parameters()} <= {id(p) for p in program.parameters()}
    graph.load_state_dict(before)


class Plain(Block):
    def forward(self, x: Tensor, residual: Tensor) -> Tensor:
        return self.norm(self.dropout(x) + residual)


class DroppedIsReturned(Block):
    def forward(self, x: Tensor, residual: Tensor) -> tuple[Tensor, Tensor]:  # type: ignore[override]
        dropped = self.dropout(x + self.bias)
        return self.norm(dropped + residual), dropped


class OtherRandomNumbersBetween(Block):
    def forward(self, x: Tensor, residual: Tensor) -> Tensor:
        dropped = self.dropout(x + self.bias)
        noise = torch.rand_like(residual)
        return self.norm(dropped + residual) * noise


class DropsTheResidual(Block):
    def forward(self, x: Tensor, residual: Tensor) -> Tensor:
        return self.norm(self.dropout(x + self.bias + residual))


class BroadcastResidual(Block):
    def forward(self, x: Tensor, residual: Tensor) -> Tensor:
        return self.norm(self.dropout(x + self.bias) + residual[:1])


class BiasOfAnotherShape(Block):
    def forward(self, x: Tensor, residual: Tensor) -> Tensor:
        return self.norm(self.dropout(x + residual) + residual)


class InPlace(Block):
    def __init__(self) -> None:
        super().__init__()
        self.dropout = nn.Dropout(0.4, inplace=True)


LOOKALIKES: dict[str, tuple[type[Block], tuple[str, ...]]] = {
    "no bias": (Plain, ()),
    "the residual is dropped as well": (DropsTheResidual, ()),
    "an intermediate value is returned": (DroppedIsReturned, ("is an output",)),
    "other random numbers are drawn between": (OtherRandomNumbersBetween, ("random order",)),
    "the residual is broadcast": (BroadcastResidual, ("shape",)),
    "the bias has two dimensions": (BiasOfAnotherShape, ("bias shape",)),
    "dropout works in place": (InPlace, ("in place",)),
}


@pytest.mark.parametrize("case", LOOKALIKES)
def test_a_look_alike_is_left_alone_and_the_reason_given(case: str) -> None:
    build, rules = LOOKALIKES[case]
    left_alone(build(), INPUTS, NAME, *rules)
