"""The front door: what goes in, what comes out, and that nothing of the caller's changes."""

import copy
from collections.abc import Callable
from pathlib import Path
from typing import Any, ClassVar, cast

import pytest
import torch
import torch.nn.functional as F
from torch import fx, nn
from torch.fx.passes.infra.pass_manager import PassManager

from course_lib.capture import capture
from course_lib.errors import FusionError, GraphError
from course_lib.fusion import PASSES, FusionPass, LinearBatchNorm, Match, Objection, fuse
from course_lib.fusion.fusion_pass import GraphPass
from course_lib.graph import propagate_shapes
from course_lib.models import TransformerConfig, TransformerEncoder
from course_lib.verify import verify

Tensor = torch.Tensor
CONFIG = TransformerConfig(
    hidden_size=16, num_heads=2, intermediate_size=24, num_layers=2, vocab_size=30, max_positions=8, dropout=0.2
)
X = torch.randn(5, 6, generator=torch.Generator().manual_seed(0))


class Small(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.dense, self.norm, self.bias = nn.Linear(6, 6), nn.LayerNorm(6), nn.Parameter(torch.randn(6))

    def forward(self, x: Tensor) -> Tensor:
        return cast(Tensor, self.norm(F.gelu(self.dense(x) + self.bias) + x))


def _by_a_backend(program: nn.Module) -> tuple[fx.GraphModule, list[Any]]:
    captured: list[tuple[fx.GraphModule, list[Any]]] = []

    def backend(graph: fx.GraphModule, inputs: list[Any]) -> Callable[..., object]:
        captured.append((graph, inputs))
        return graph.forward

    torch._dynamo.reset()
    torch.compile(program, backend=backend)(X)
    return captured[0]


def test_every_way_to_capture_gives_the_same_fusions() -> None:
    program = Small()
    expected = {"bias_gelu": 1, "residual_layer_norm": 1}
    exported = torch._dynamo.export(program, aten_graph=False)(X).graph_module
    for given in (program, capture(program), fx.symbolic_trace(program), torch.export.export(program, (X,)), exported):
        result = fuse(given, (X,))
        assert {name: count for name, count in result.num_matches_by_pass.items() if count} == expected
        torch.testing.assert_close(result.graph_module(X), program(X))
    graph, inputs = _by_a_backend(program)
    result = fuse(graph, inputs)
    assert result.num_matches == 2
    torch.testing.assert_close(result.graph_module(*inputs)[0], program(X))


def test_a_transformer_is_fused_in_both_modes_and_the_cost_goes_down() -> None:
    model = TransformerEncoder(CONFIG)
    tokens = torch.arange(12).reshape(2, 6)
    captured = capture(model, concrete_args={"mask": None})
    result = fuse(captured, (tokens,))
    assert result.num_matches_by_pass["bias_dropout_residual_layer_norm"] == 4
    assert result.num_matches_by_pass["residual_layer_norm"] == 1
    assert result.cost_before is not None
    assert result.cost_after is not None
    assert result.cost_after.launches < result.cost_before.launches
    assert result.cost_after.bytes_moved < result.cost_before.bytes_moved
    report = verify(model, result.graph_module, (tokens,))
    assert report.passed, str(report)


def test_the_caller_keeps_what_it_gave() -> None:
    gm = fx.symbolic_trace(Small())
    code, modules, metas = gm.code, dict(gm.named_modules()), [dict(node.meta) for node in gm.graph.nodes]
    state = copy.deepcopy(gm.state_dict())
    fuse(gm, (X,))
    with pytest.raises(GraphError):
        fuse(gm, (torch.randn(5, 7),))
    assert gm.code == code
    assert dict(gm.named_modules()) == modules
    assert [node.meta.keys() for node in gm.graph.nodes] == [meta.keys() for meta in metas]
    assert all(torch.equal(value, state[name]) for name, value in gm.state_dict().items())


class SumOfSquares(FusionPass):
    """A pass of one's own, as short as it gets."""

    name = "sum_of_squares"
    patterns: ClassVar = (lambda x, y: x * x + y * y,)

    def replacement(self, match: Match) -> Callable[..., object]:
        return lambda x, y: torch.addcmul(x * x, y, y)


class Broken(SumOfSquares):
    name = "broken"

    def guard(self, match: Match) -> Objection | None:
        raise RuntimeError("a fault of the pass")


def test_a_pass_of_ones_own_needs_a_pattern_and_a_replacement() -> None:
    def program(x: Tensor, y: Tensor) -> Tensor:
        return torch.mul(x, x).add(y * y)

    result = fuse(program, (X, X + 1), (SumOfSquares(),))
    assert result.num_matches_by_pass == {"sum_of_squares": 1}
    assert verify(program, result.graph_module, (X, X + 1)).passed
    assert fuse(lambda x, y: x * y + y * y, (X, X), (SumOfSquares(),)).num_matches == 0


def test_a_pass_that_fails_leaves_the_graph_as_it_was() -> None:
    gm = fx.symbolic_trace(lambda x, y: x * x + y * y)
    code = gm.code
    with pytest.raises(RuntimeError, match="a fault of the pass"):
        fuse(gm, (X, X), (Broken(),))
    assert gm.code == code
    gm.graph.lint()


def test_passes_run_in_a_pass_manager_of_torch_fx() -> None:
    gm = propagate_shapes(fx.symbolic_trace(Small()), (X,))
    manager = PassManager([PASSES["bias_gelu"](), PASSES["residual_layer_norm"]()])
    assert "bias_gelu" in manager(gm).graph_module.code


def test_explain_says_where_why_and_what_would_help() -> None:
    def program(x: Tensor, b: Tensor) -> Tensor:
        return F.gelu(torch.add(x, b, alpha=2))

    text = fuse(program, (X, X[0])).explain()
    assert "bias_gelu left add, gelu alone" in text
    assert "return F.gelu(torch.add(x, b, alpha=2))" in text
    assert "alpha=2; only alpha=1 can be fused" in text
    assert "what would help: Write the factor as a multiplication" in text
    assert "Nothing" in fuse(lambda x: x, (X,)).explain()


@pytest.mark.parametrize(
    ("arguments", "options", "says"),
    [
        (("a text", (X,)), {}, "expects a module"),
        ((Small(), (X,), ("bias_gellu",)), {}, "knows no pass 'bias_gellu'; it knows"),
        (
            (Small(), (X,), "bias_gelu"),
            {},
            r"got passes='bias_gelu'; it expects several, such as passes=\('bias_gelu',\)",
        ),
        ((Small(), (X,), LinearBatchNorm()), {}, r"expects several, such as passes=\(LinearBatchNorm\(\),\)"),
        ((Small(), (X,), LinearBatchNorm), {}, r"expects several, such as passes=\(LinearBatchNorm\(\),\)"),
        ((Small(), (X,), (LinearBatchNorm,)), {}, r"the class LinearBatchNorm as a pass; give an object of it"),
        ((Small(), (X,)), {"level": "fast"}, "it knows 'exact', 'lossy'"),
    ],
)
def test_what_cannot_be_meant_is_refused_in_one_sentence(arguments: Any, options: Any, says: str) -> None:
    with pytest.raises(FusionError, match=says):
        fuse(*arguments, **options)


def test_every_pass_is_documented_and_registered_under_its_name() -> None:
    for name, cls in PASSES.items():
        assert issubclass(cls, GraphPass)
        assert cls.name == name
        assert cls.__doc__
        assert cls.level in ("exact", "lossy")
        assert cls.level == "exact" or not cls.by_default


def test_a_fusion_hides_no_later_one_from_a_parameter_that_both_read() -> None:
    norm = nn.LayerNorm(6)

    def program(x: Tensor) -> Tensor:
        for _ in range(12):  # more than there are rounds
            x = norm(F.gelu(x).mul_(2) + x)
        return x

    class Program(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.norm = norm

        def forward(self, x: Tensor) -> Tensor:
            return program(x)

    assert fuse(Program(), (X,), ("residual_layer_norm",)).num_matches == 12


def test_places_that_are_alike_are_told_once() -> None:
    def program(x: Tensor, b: Tensor) -> Tensor:
        for _ in range(3):
            x = F.gelu(torch.add(x, b, alpha=2))
        return x

    text = fuse(program, (X, X[0])).explain()
    assert text.startswith("3 places look like something that can be fused, and were left as they are:")
    assert text.count("what would help") == 1
    assert "what is there: add = torch.add(x, b, alpha=2)" in text
    assert "and 2 more like it, such as add_1, gelu_1" in text


def test_known_defects_of_others_are_not_shared() -> None:
    def scaled(a: Tensor, b: Tensor, c: Tensor) -> Tensor:
        return torch.add(a @ b, c, alpha=2)

    def written(x: Tensor, y: Tensor) -> Tensor:
        h = x * 2
        h.add_(y)
        return h

    def overwritten(x: Tensor, b: Tensor) -> Tensor:
        hidden = x + b
        x.mul_(2)
        return F.gelu(hidden)

    square = X[:, :5]
    for program, inputs in ((scaled, (square, square, square)), (written, (X, X)), (overwritten, (X, X[0]))):
        report = verify(program, fuse(program, inputs).graph_module, inputs, gradients=False)
        assert report.passed, str(report)


TESTS = Path(__file__).parent / "passes"


@pytest.mark.parametrize("name", PASSES)
def test_a_pass_has_one_name_in_all_places(name: str) -> None:
    found = PASSES[name]

    assert found.__module__ == f"course_lib.fusion.passes.{name}"
    assert found.__name__ == "".join(word.capitalize() for word in name.split("_"))
    assert (TESTS / f"test_{name}.py").is_file()
