"""Each exact pass keeps a program in training, in evaluation and in mixed modes, and so do copies of its result."""

import copy
import pickle
from collections.abc import Callable

import pytest
import torch
import torch.nn.functional as F
from torch import fx, nn

from course_lib.fusion import PASSES, fuse

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


PROGRAMS: tuple[type[nn.Module], ...] = (
    DetachedBranch, DetachedByFunction, FrozenParts, TrainedPart, SharedInEvaluation, ReadBeforeTheWrite,
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


def _run(module: nn.Module, mode: bool | None) -> list[torch.Tensor]:
    """Return the results and gradients of one call, and the buffers after it; leave the module as it was."""
    module = copy.deepcopy(module)
    if mode is not None:
        module.train(mode)
    x = X.clone().requires_grad_()
    torch.manual_seed(0)
    results = module(x)
    results = results if isinstance(results, tuple) else (results,)
    given = {"x": x} | dict(module.named_parameters())
    torch.stack([one.square().sum() for one in results]).sum().backward()
    grads = [torch.zeros(()) if one.grad is None else one.grad for _, one in sorted(given.items())]
    return [*results, *grads, *(one for _, one in sorted(module.named_buffers()))]


@pytest.mark.parametrize("passes", SELECTIONS, ids=str)
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.__name__)
def test_a_fused_program_and_its_copies_do_the_same_in_every_mode(program: type[nn.Module], passes: str | None) -> None:
    torch.manual_seed(1)
    module = program()
    gm = fuse(module, (X,), None if passes is None else [passes]).graph_module
    modes = {path: part.training for path, part in gm.named_modules()}
    for way, again in WAYS.items():
        copied = again(gm)
        assert {path: part.training for path, part in copied.named_modules()} == modes, way
        for mode in (None, True, False):
            for expected, found in zip(_run(module, mode), _run(copied, mode), strict=True):
                torch.testing.assert_close(found, expected, msg=f"{way}, training {mode}")
