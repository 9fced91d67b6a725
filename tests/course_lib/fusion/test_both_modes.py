"""Each exact pass keeps a program in training, in evaluation and in mixed modes, and so do copies of its result."""

import copy
import pickle
from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import fx, nn

from course_lib.errors import CaptureError
from course_lib.fusion import PASSES, fuse
from course_lib.verify import verify
from tests.course_lib.fusion.program_of_each_pass import PROGRAMS as OF_PASSES
from tests.course_lib.fusion.program_of_each_pass import fused_by

X = torch.linspace(-2.0, 2.0, 32).reshape(4, 8)


class DetachedBranch(nn.Module):
    """Autograd answers `detach_` itself, so that no operator is seen."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        h = x * 2
        h.detach_()
        return h * 3 + x


class DetachedByFunction(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.bias = nn.Parameter(torch.ones(8))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        h = x + self.bias
        torch.detach_(h)
        return F.gelu(h) + x


class FrozenParts(nn.Module):
    """Two parts are in another mode than the model."""

    def __init__(self) -> None:
        super().__init__()
        self.linear, self.inner = nn.Linear(8, 8), nn.Sequential(nn.BatchNorm1d(8), nn.ReLU())
        self.norm, self.slope = nn.BatchNorm1d(8), nn.RReLU()
        self.inner.eval()
        self.slope.eval()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.slope(self.norm(self.inner(F.gelu(self.linear(x)))))


class TrainedPart(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.norm, self.last = nn.BatchNorm1d(8), nn.Linear(8, 8)
        self.eval()
        self.norm.train()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return F.gelu(self.last(self.norm(x)))


class SharedInEvaluation(nn.Module):
    """In training a Dropout gives new memory; in evaluation it gives its input, and the write reaches it."""

    def __init__(self) -> None:
        super().__init__()
        self.drop = nn.Dropout(0.5)

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        y = x.clone()
        v = y * 1.0
        h = self.drop(y)
        h.add_(1.0)
        return h, v.sum()


class ReadBeforeTheWrite(nn.Module):
    """In evaluation, GELU with its bias may not be computed where GELU is: the write is in between."""

    def __init__(self) -> None:
        super().__init__()
        self.bias, self.drops = nn.Parameter(torch.ones(8)), nn.Sequential(nn.Dropout(0.5), nn.Dropout1d(0.5))

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        y = x * 2
        t = y + self.bias
        h = self.drops(y)
        h.add_(1.0)
        return h, F.gelu(t)


class OwnDropout(nn.Dropout):
    """A layer of PyTorch under another name."""


class OwnBatchNorm(nn.BatchNorm1d):
    """A layer of PyTorch with other defaults."""

    def __init__(self, size: int) -> None:
        super().__init__(size, momentum=0.5)


class OwnSlope(nn.RReLU):
    """A layer of PyTorch with a method of its own, which a call does not use."""

    def bounds(self) -> tuple[float, float]:
        return self.lower, self.upper


class OwnLayers(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear, self.drop, self.last = nn.Linear(8, 8), OwnDropout(0.5), nn.LayerNorm(8)
        self.norm, self.slope = OwnBatchNorm(8), OwnSlope()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.last(x + self.drop(self.slope(self.norm(self.linear(x)))))


class OwnFusedLayers(nn.Module):
    """A layer with dropout, residual and LayerNorm, whose Dropout has another name."""

    def __init__(self) -> None:
        super().__init__()
        self.linear, self.drop, self.last = nn.Linear(8, 8), OwnDropout(0.5), nn.LayerNorm(8)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.last(x + self.drop(self.linear(x)))


class OwnSharedInEvaluation(SharedInEvaluation):
    def __init__(self) -> None:
        super().__init__()
        self.drop = OwnDropout(0.5)


PROGRAMS: tuple[type[nn.Module], ...] = (
    DetachedBranch, DetachedByFunction, FrozenParts, TrainedPart, SharedInEvaluation, ReadBeforeTheWrite,
    OwnLayers, OwnSharedInEvaluation,
)  # fmt: skip
SELECTIONS = (None, *(name for name, one in PASSES.items() if one.level == "exact"))


def _unpickled(gm: fx.GraphModule) -> fx.GraphModule:
    loaded = pickle.loads(pickle.dumps(gm))
    assert isinstance(loaded, fx.GraphModule)
    return loaded


def _with_its_state(gm: fx.GraphModule) -> fx.GraphModule:
    copied, state = copy.deepcopy(gm), gm.state_dict()
    for tensor in copied.state_dict().values():
        tensor.zero_()
    copied.load_state_dict(state)
    return copied


WAYS: dict[str, Callable[[fx.GraphModule], fx.GraphModule]] = {
    "as it is": lambda gm: gm,
    "pickled": _unpickled,
    "deep copy": copy.deepcopy,
    "state dict": _with_its_state,
}


def _run(program: Callable[..., Any], mode: bool | None, inputs: tuple[torch.Tensor, ...] = (X,)) -> list[torch.Tensor]:
    """Return the results and gradients of one call, and the buffers after it; leave the program as it was."""
    module = copy.deepcopy(program) if isinstance(program, nn.Module) else nn.Module()
    if mode is not None:
        module.train(mode)
    fresh = [one.clone().requires_grad_() for one in inputs]
    torch.manual_seed(0)
    results = module(*fresh) if isinstance(program, nn.Module) else program(*fresh)
    results = results if isinstance(results, tuple) else (results,)
    given = {f"input {number}": one for number, one in enumerate(fresh)} | dict(module.named_parameters())
    torch.stack([one.square().sum() for one in results]).sum().backward()
    grads = [torch.zeros(()) if one.grad is None else one.grad for _, one in sorted(given.items())]
    return [*results, *grads, *(one for _, one in sorted(module.named_buffers()))]


@pytest.mark.parametrize("passes", SELECTIONS, ids=str)
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.__name__)
def test_a_fused_program_and_its_copies_do_the_same_in_every_mode(program: type[nn.Module], passes: str | None) -> None:
    torch.manual_seed(1)
    module = program()
    result = fuse(module, (X,), None if passes is None else [passes])
    assert result.lost == ()
    gm = result.graph_module
    modes = {path: part.training for path, part in gm.named_modules()}
    for way, again in WAYS.items():
        copied = again(gm)
        assert {path: part.training for path, part in copied.named_modules()} == modes, way
        for mode in (None, True, False):
            for expected, found in zip(_run(module, mode), _run(copied, mode), strict=True):
                torch.testing.assert_close(found, expected, msg=f"{way}, training {mode}")


FOLDED = ("conv_batch_norm", "linear_batch_norm", "layer_norm_to_batch_norm")  # they hold for evaluation
OTHER_DRAWS = ("bias_dropout_residual_layer_norm",)
APPROXIMATE = ("gelu_tanh", "gelu_to_relu", *FOLDED)


@pytest.mark.parametrize("case", OF_PASSES)
def test_what_a_pass_makes_and_its_copies_do_the_same_in_every_mode(case: str) -> None:
    program, inputs = OF_PASSES[case]
    gm = fused_by(case).graph_module
    for mode in (None, True, False):
        made = _run(gm, mode, inputs)
        if case not in APPROXIMATE and (case not in OTHER_DRAWS or not mode):
            torch.testing.assert_close(made[0], _run(program, mode, inputs)[0], rtol=1e-4, atol=1e-5)
        for way, again in WAYS.items():
            for expected, found in zip(made, _run(again(gm), mode, inputs), strict=True):
                torch.testing.assert_close(found, expected, msg=f"{way}, training {mode}")


class Doubled(nn.Dropout):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return super().forward(x) * 2


class DoubledSlope(nn.RReLU):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return super().forward(x) * 2


@pytest.mark.parametrize("layer", [Doubled(0.5), DoubledSlope()], ids=lambda layer: type(layer).__name__)
@pytest.mark.parametrize("training", [True, False])
def test_a_mode_that_a_graph_fixes_is_said(layer: nn.Module, training: bool) -> None:
    with pytest.warns(UserWarning, match=f"in {'evaluation' if training else 'training'} mode, the result is off"):
        assert fuse(nn.Sequential(nn.Linear(8, 8), layer).train(training), (X,)).lost


def test_a_dropout_of_another_name_is_fused_in_every_mode() -> None:
    module = OwnFusedLayers()
    result = fuse(module, (X,))
    assert result.num_matches_by_pass["bias_dropout_residual_layer_norm"] == 1
    for mode in (True, False):
        report = verify(module.train(mode), result.graph_module.train(mode), (X,))
        assert report.passed, str(report)


@pytest.mark.filterwarnings("ignore::FutureWarning", "ignore::DeprecationWarning")
def test_a_part_that_is_a_script_is_one_node_with_its_parameters_and_mode() -> None:
    model = nn.Sequential(torch.jit.script(nn.Sequential(nn.Linear(8, 8), nn.Dropout(0.5))), nn.GELU())
    for program in (model, copy.deepcopy(model)):
        gm = fuse(program, (X,)).graph_module
        assert gm.state_dict().keys() == program.state_dict().keys() == copy.deepcopy(gm).state_dict().keys()
        for mode in (True, False):
            gm.train(mode)
            torch.manual_seed(0)
            results = gm(X), copy.deepcopy(gm)(X)
            torch.manual_seed(0)
            assert not torch.equal(results[0], results[1]) or not mode
            torch.testing.assert_close(results[0], program.train(mode)(X))


def test_a_script_itself_is_refused_with_a_sentence() -> None:
    with pytest.raises(CaptureError, match=r"whose code is TorchScript.* before it is scripted"):
        fuse(torch.jit.script(nn.Linear(8, 8)), (X,))
