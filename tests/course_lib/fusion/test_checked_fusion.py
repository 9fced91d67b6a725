"""Where shapes are unknown, a fusion is checked when it runs, and the operators run as written if it may not be."""

import copy
import pickle
from collections.abc import Callable
from typing import cast

import pytest
import torch
import torch.nn.functional as F
from torch import fx, nn

from course_lib.fusion import PASSES, FusionResult, Objection, fuse, fuse_bias_gelu
from course_lib.fusion.effects import is_pure, is_random, mutates
from course_lib.fusion.fusion_pass import FusionPass
from course_lib.fusion.inserted_modules import CheckedFusion
from course_lib.fusion.matching import Match
from course_lib.graph import cost, table
from course_lib.verify import verify

Tensor = torch.Tensor
X, ROW = torch.randn(4, 6), torch.randn(6)


def _program(x: Tensor, b: Tensor) -> Tensor:
    return F.gelu(x + b)


class Block(nn.Module):
    """Parameters of its own, a training flag, and a dropout."""

    def __init__(self) -> None:
        super().__init__()
        self.norm, self.dropout = nn.LayerNorm(6), nn.Dropout(0.3)

    def forward(self, x: Tensor, residual: Tensor, bias: Tensor) -> Tensor:
        return cast(Tensor, self.norm(self.dropout(x + bias) + residual))


def _only(result: FusionResult) -> CheckedFusion:
    (module,) = result.checked.values()
    return module


def _launches(result: FusionResult, *inputs: Tensor) -> tuple[str, ...]:
    return cost(result.graph_module, inputs).operators


# Operands, and whether they may be fused.
OPERANDS: dict[str, tuple[Tensor, Tensor, bool]] = {
    "a bias": (X, ROW, True),
    "another length": (torch.randn(2, 3, 5), torch.randn(5), True),
    "the bias first": (ROW, X, True),
    "strided": (torch.randn(6, 4).t(), ROW, True),
    "no rows": (torch.randn(0, 6), ROW, True),
    "a matrix": (X, X, False),
    "one element": (X, torch.randn(1), False),
    "two dtypes": (X.double(), ROW, False),
    "whole numbers": (torch.arange(6), torch.randn(6), False),
}


@pytest.mark.parametrize("case", OPERANDS)
def test_each_kind_of_operands_is_fused_if_it_may_be(case: str) -> None:
    x, b, fits = OPERANDS[case]
    result = fuse_bias_gelu(fx.symbolic_trace(_program))
    assert (result.num_matches, result.rejected) == (1, ())
    assert _launches(result, x, b) == (("course_lib.bias_gelu",) if fits else ("add", "gelu"))
    report = verify(_program, result.graph_module, (x, b), modes=("eval",), dtypes=(torch.float32,))
    assert report.passed, str(report)
    torch.testing.assert_close(result.graph_module(x, b), _program(x, b))


def test_rank_dtype_and_last_dimension_are_looked_at_once_for_each_kind_of_operands() -> None:
    result = fuse_bias_gelu(fx.symbolic_trace(_program))
    for x, b in ((X, ROW), (X + 1, ROW), (X, X), (X.double(), ROW.double()), (X, X)):
        result.graph_module(x, b)
    assert list(_only(result).decisions.values()).count("fused") == 2
    assert len(_only(result).decisions) == 3
    assert "no 1-D bias" in _only(result).decisions["float32[4, 6], float32[4, 6]"]


def test_operands_that_the_operators_refuse_are_refused_in_their_words() -> None:
    graph = fuse_bias_gelu(fx.symbolic_trace(_program)).graph_module
    with pytest.raises(RuntimeError, match=r"size of tensor a \(6\) must match"):
        graph(X, torch.randn(5))


def test_train_and_eval_reach_what_is_fused_and_parameters_stay_where_they_were() -> None:
    model, inputs = Block(), (X, X + 1, ROW)
    result = PASSES["bias_dropout_residual_layer_norm"]().call(fx.symbolic_trace(model))
    assert result.graph_module.state_dict().keys() == model.state_dict().keys()
    report = verify(model, result.graph_module, inputs)
    assert report.passed, str(report)
    assert verify(model, result.graph_module, (X, X[:1], ROW)).passed
    for mode in (True, False, True):
        result.graph_module.train(mode)
        repeated = [result.graph_module(*inputs) for _ in range(2)]
        assert torch.equal(*repeated) is not mode


def test_it_is_one_node_that_can_be_read_copied_pickled_and_compiled() -> None:
    result = fuse_bias_gelu(fx.symbolic_trace(_program))
    graph = result.graph_module
    graph.graph.lint()
    graph(X, ROW)
    assert "CheckedFusion (checked_bias_gelu_0)" in str(table(graph))
    assert "bias_gelu of add, gelu; so far fused for 1" in str(graph)
    for again in (copy.deepcopy(graph), pickle.loads(pickle.dumps(graph))):
        module = again.get_submodule("checked_bias_gelu_0")
        assert isinstance(module, CheckedFusion)
        assert not module.decisions
        torch.testing.assert_close(again(X, ROW), _program(X, ROW))
    compiled = torch.compile(graph, backend="eager", fullgraph=True)
    torch.testing.assert_close(compiled(X, ROW), _program(X, ROW))
    assert fuse_bias_gelu(graph).num_matches == 0


def test_other_passes_know_what_it_does() -> None:
    with_dropout = PASSES["bias_dropout_residual_layer_norm"]().call(fx.symbolic_trace(Block()))
    for result, random in ((fuse_bias_gelu(fx.symbolic_trace(_program)), False), (with_dropout, True)):
        (node,) = [node for node in result.graph_module.graph.nodes if node.name in result.checked]
        assert (is_random(node), mutates(node), is_pure(node)) == (random, False, False)


def test_the_result_says_what_is_fused_later_and_why() -> None:
    result = fuse_bias_gelu(fx.symbolic_trace(_program))
    assert "bias_gelu fuses add, gelu when the graph runs" in result.explain()
    assert "why then: the shape of x is not known" in result.explain()
    assert "under a check when the graph runs: 1" in str(result)


class Exported(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.norm, self.dense, self.bias = nn.LayerNorm(6), nn.Linear(6, 6), nn.Parameter(torch.randn(6))

    def forward(self, x: Tensor, residual: Tensor) -> Tensor:
        return cast(Tensor, self.norm(F.gelu(self.dense(x) + self.bias) + residual))


def test_sizes_that_are_symbols_are_asked_for_when_the_graph_runs() -> None:
    model, batch = Exported(), torch.export.Dim("batch", min=1, max=64)
    program = torch.export.export(model, (X, X + 1), dynamic_shapes=({0: batch}, {0: batch}))
    result = fuse(program, (X, X))
    assert len(result.checked) == 2
    assert "has another shape in each run" in result.explain()
    for rows in (1, 3, 4, 9):
        x, residual = torch.randn(rows, 6), torch.randn(rows, 6)
        torch.testing.assert_close(result.graph_module(x, residual), model(x, residual))
    assert all(set(module.decisions.values()) == {"fused"} for module in result.checked.values())


class OnRequest(FusionPass):
    """A pass that knows its operands or leaves them alone."""

    name = "on_request"
    patterns = (lambda x: torch.relu(torch.tanh(x)),)
    checks_at_run_time = False

    def guard(self, match: Match) -> Objection | None:
        return Objection("shape unknown", "nobody knows")

    def replacement(self, match: Match) -> Callable[..., object]:
        return torch.abs


def test_a_match_is_refused_where_a_check_cannot_be_stated() -> None:
    result = OnRequest().call(fx.symbolic_trace(lambda x: torch.relu(torch.tanh(x))))
    assert [one.rule for one in result.rejected] == ["shape unknown"]
    folding = nn.Sequential(nn.Linear(6, 6), nn.BatchNorm1d(6)).eval()  # BatchNorm's flag can be no operand
    assert PASSES["linear_batch_norm"]().call(fx.symbolic_trace(folding)).num_matches == 0
