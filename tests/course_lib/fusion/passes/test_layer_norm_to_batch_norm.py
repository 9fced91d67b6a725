"""LayerNorm becomes BatchNorm, which is another function, with statistics that were measured and not made up."""

from collections.abc import Callable

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from course_lib.errors import FusionError
from course_lib.fusion import FusionResult, fuse
from course_lib.fusion.passes.layer_norm_to_batch_norm import LayerNormToBatchNorm
from course_lib.graph import count_operators
from course_lib.verify import verify
from tests.course_lib.fusion.passes.rewrites import normal

Tensor = torch.Tensor
NAME = "layer_norm_to_batch_norm"
X = normal(6, 10, 4)
BATCHES = [(X,), (X[:3] * 3 + 1,)]


class Block(nn.Module):
    """Two LayerNorms, each of which a linear layer reads."""

    def __init__(self, *, affine: bool = True, bias: bool = True) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.first, self.last = nn.Linear(4, 4), nn.Linear(4, 3)
        self.norms = nn.ModuleList(nn.LayerNorm(4, eps=1e-3, elementwise_affine=affine, bias=bias) for _ in range(2))
        self.dropout = nn.Dropout(0.5)
        for norm in self.norms if affine else ():
            nn.init.normal_(norm.weight)  # type: ignore[arg-type]  # LayerNorm's

    def forward(self, x: Tensor) -> object:
        hidden = self.dropout(torch.tanh(self.first(self.norms[0](x))))
        return self.last(self.norms[1](hidden))


class Meant(Block):
    """The same with BatchNorm over the rows, written by hand, with the statistics of two batches."""

    def forward(self, x: Tensor) -> object:
        both = torch.cat([batch.flatten(0, -2) for (batch,) in BATCHES])
        rows, given = self._normed(0, x.flatten(0, -2), both)
        hidden, seen = torch.tanh(self.first(rows)), torch.tanh(self.first(given))
        return self.last(self._normed(1, hidden, seen)[0]).unflatten(0, x.shape[:-1])

    def _normed(self, number: int, rows: Tensor, given: Tensor) -> list[Tensor]:
        norm, mean, variance = self.norms[number], given.mean(0), given.var(0, unbiased=False)
        return [F.batch_norm(one, mean, variance, norm.weight, norm.bias, eps=1e-3) for one in (rows, given)]  # type: ignore[arg-type]  # LayerNorm's


def _converted(program: nn.Module, *more: str) -> FusionResult:
    return fuse(program, (X,), (LayerNormToBatchNorm(calibration=BATCHES), *more), level="lossy")


def test_a_calibrated_graph_normalises_by_the_mean_and_variance_of_the_calibration_rows() -> None:
    program = Block().eval()
    result = _converted(program)
    assert result.num_matches == 2
    found = count_operators(result.graph_module)
    assert found["torch.nn.BatchNorm1d"] == 2
    assert "torch.nn.LayerNorm" not in found
    with torch.no_grad():
        torch.testing.assert_close(result.graph_module(X), Meant()(X))
    assert not torch.allclose(result.graph_module(X), program(X), atol=0.1)  # another function: that is the bargain


def test_a_second_run_changes_nothing_and_the_program_is_as_it_was() -> None:
    program = Block().eval()
    expected = program(X)
    converted = _converted(program)
    assert (
        fuse(converted.graph_module, (X,), (LayerNormToBatchNorm(calibration=BATCHES),), level="lossy").num_matches == 0
    )
    assert all(type(norm) is nn.LayerNorm for norm in program.norms)
    assert torch.equal(program(X), expected)


def test_weights_are_shared_and_a_checkpoint_has_the_old_names_and_the_statistics() -> None:
    program = Block().eval()
    gm = _converted(program).graph_module
    assert gm.get_parameter("norms.0.weight") is program.norms[0].weight
    new = {key for key in gm.state_dict() if key not in program.state_dict()}
    assert new == {
        f"norms.{n}.{name}" for n in range(2) for name in ("running_mean", "running_var", "num_batches_tracked")
    }
    missing, unexpected = gm.load_state_dict(program.state_dict(), strict=False)
    # PyTorch itself fills in the number of batches.
    assert (set(missing), unexpected) == ({name for name in new if "running" in name}, [])


@pytest.mark.parametrize("options", [{}, {"affine": False}, {"bias": False}], ids=["affine", "plain", "no bias"])
def test_without_calibration_training_finds_the_statistics(options: dict[str, bool]) -> None:
    gm = fuse(Block(**options).train(), (X,), (NAME,), level="lossy").graph_module
    norm = gm.get_submodule("norms.0")
    assert isinstance(norm, nn.BatchNorm1d)
    assert norm.num_batches_tracked == 0
    for _ in range(200):
        gm(X)
    torch.testing.assert_close(norm.running_mean, X.flatten(0, 1).mean(0))
    gm.eval()
    torch.testing.assert_close(gm(X)[:1], gm(X[:1]))  # rows no longer depend on the rest of the batch


def test_gradients_reach_every_parameter() -> None:
    gm = fuse(Block().train(), (X,), (NAME,), level="lossy").graph_module
    gm(X).square().sum().backward()
    assert all(parameter.grad is not None and parameter.grad.any() for parameter in gm.parameters())


def test_what_it_makes_can_be_folded_into_the_next_linear_layer() -> None:
    program = Block().eval()
    converted = _converted(program)
    folded = _converted(program, "linear_batch_norm")
    assert folded.num_matches_by_pass == {NAME: 2, "linear_batch_norm": 2}
    assert "torch.nn.BatchNorm1d" not in count_operators(folded.graph_module)
    report = verify(converted.graph_module, folded.graph_module, (X,), modes=("eval",))
    assert report.passed, str(report)
    assert folded.cost_after is not None
    assert converted.cost_after is not None
    assert folded.cost_after.bytes_moved < converted.cost_after.bytes_moved


def test_a_matrix_needs_no_reshaping() -> None:
    gm = fuse(Block().train(), (X[0],), (NAME,), level="lossy").graph_module
    assert "flatten" not in gm.code
    assert gm(X[0]).shape == (10, 3)


class Twice(Block):
    def forward(self, x: Tensor) -> object:
        return self.norms[0](x) + self.norms[0](x * 2)


class Functional(Block):
    def forward(self, x: Tensor) -> object:
        norm = self.norms[0]
        return F.layer_norm(x, (4,), norm.weight, norm.bias)  # type: ignore[arg-type]  # LayerNorm's


class WeightReadElsewhere(Block):
    def forward(self, x: Tensor) -> object:
        return self.norms[0](x) * self.norms[0].weight


class Wide(Block):
    def __init__(self) -> None:
        super().__init__()
        self.norm = nn.LayerNorm((10, 4))

    def forward(self, x: Tensor) -> object:
        return self.norm(x)


def _hooked() -> nn.Module:
    program = Block()
    for norm in program.norms:
        norm.register_forward_hook(lambda *_: None)
    return program


REFUSED: dict[str, tuple[Callable[[], nn.Module], Tensor, str]] = {
    "evaluating without calibration": (lambda: Block().eval(), X, "calibration"),
    "called twice": (Twice, X, "shared"),
    "read elsewhere": (WeightReadElsewhere, X, "shared"),
    "a function": (Functional, X, "statistics of a function"),
    "two dimensions": (Wide, X, "shape"),
    "one row": (Block, X[:1, :1], "shape"),
    "hooks": (_hooked, X, "hooks"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_a_layer_norm_that_must_stay_does_and_the_reason_is_given(case: str) -> None:
    build, x, rule = REFUSED[case]
    result = fuse(build(), (x,), (NAME,), level="lossy")
    assert result.num_matches == 0
    assert {refusal.rule for refusal in result.rejected} == {rule}
    assert all(refusal.remedy and refusal.source for refusal in result.rejected)


def test_it_runs_only_when_it_is_named_and_allowed() -> None:
    with pytest.raises(FusionError, match='level="lossy"'):
        fuse(Block(), (X,), (NAME,))
    assert NAME not in fuse(Block(), (X,), level="lossy").num_matches_by_pass


def test_calibration_inputs_that_do_not_fit_are_refused_in_one_sentence() -> None:
    program = Block().eval()
    for calibration in ([X], X):
        with pytest.raises(FusionError, match=r"got a Tensor in calibration; .* given as \[\(x,\), \(y,\)\]"):
            LayerNormToBatchNorm(calibration=calibration)
    with pytest.raises(FusionError, match="the calibration inputs"):
        fuse(program, (X,), (LayerNormToBatchNorm(calibration=[(normal(2, 5),)]),), level="lossy")
    assert all(type(norm) is nn.LayerNorm for norm in program.norms)
