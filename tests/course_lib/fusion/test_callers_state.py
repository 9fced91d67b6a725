"""What the caller gave stays as it was, and what it saved still loads."""

import copy
import pickle
import threading
from collections.abc import Callable
from typing import Any, cast

import pytest
import torch
import torch.nn.functional as F
from torch import fx, nn
from torch.nn.utils import prune

from course_lib.errors import FusionError
from course_lib.fusion import PASSES, fuse, inserted_modules
from course_lib.graph import cost

Tensor = torch.Tensor
X = torch.randn(4, 8, generator=torch.Generator().manual_seed(0))
EXACT = [name for name, one in PASSES.items() if one.level == "exact"]


class Box:
    """A class that PyTorch does not look into."""

    def __init__(self) -> None:
        self.tensor = torch.zeros(2)


def _of_a_box(box: Box) -> Tensor:
    return box.tensor.add_(1) * 2


@pytest.mark.parametrize(
    ("program", "given"),
    [
        (lambda c: c[0].add_(1) * 2, [torch.zeros(2)]),
        (lambda c: c["a"].mul_(0) + c["b"][0].add_(1), {"a": torch.ones(2), "b": (torch.zeros(2),)}),
        (lambda c: torch.add(c[0], 1, out=c[1]) * 2, (torch.zeros(2), torch.zeros(2))),
        (_of_a_box, Box()),
    ],
    ids=["list", "dict", "out", "a class of the user"],
)
def test_tensors_inside_arguments_are_not_computed_on(program: Callable[..., Tensor], given: Any) -> None:
    before = copy.deepcopy(given)
    fuse(program, (given,))
    values, expected = (torch.utils._pytree.tree_leaves(getattr(one, "tensor", one)) for one in (given, before))
    assert all(map(torch.equal, values, expected))


def _weight_norm(**_: object) -> nn.Module:
    return torch.nn.utils.weight_norm(nn.Linear(8, 8))


def _old_spectral_norm() -> nn.Module:
    module = torch.nn.utils.spectral_norm(nn.Linear(8, 8))
    module(X)  # leaves a weight that is no leaf of autograd
    return module


def _pruned() -> nn.Module:
    module = nn.Linear(8, 8)
    prune.l1_unstructured(module, "weight", amount=0.5)
    module(X)
    return module


def _quantized() -> nn.Module:
    return torch.ao.quantization.quantize_dynamic(nn.Sequential(nn.Linear(8, 8)))  # type: ignore[no-any-return]


MODULES: dict[str, Callable[[], nn.Module]] = {
    "BatchNorm": lambda: nn.BatchNorm1d(8),
    "BatchNorm of all batches": lambda: nn.BatchNorm1d(8, momentum=None),
    "spectral_norm": lambda: torch.nn.utils.parametrizations.spectral_norm(nn.Linear(8, 8)),
    "weight_norm": lambda: torch.nn.utils.parametrizations.weight_norm(nn.Linear(8, 8)),
    "old weight_norm": _weight_norm,
    "old spectral_norm": _old_spectral_norm,
    "prune": _pruned,
    "quantized": _quantized,
    "quantized, called twice": lambda: nn.Sequential(*[_quantized()] * 2),
    "scripted": lambda: torch.jit.script(nn.Sequential(nn.Linear(8, 8), nn.Tanh())),
}


@pytest.mark.filterwarnings("ignore::FutureWarning", "ignore::DeprecationWarning")
@pytest.mark.parametrize("name", MODULES)
@pytest.mark.parametrize("passes", [None, EXACT], ids=["default", "all"])
def test_fusing_changes_nothing_in_a_model_that_trains(name: str, passes: list[str] | None) -> None:
    model = nn.Sequential(MODULES[name](), nn.ReLU(inplace=True), nn.Linear(8, 8), nn.GELU()).train()
    before = {key: copy.deepcopy(value) for key, value in model.state_dict().items()}
    gm = fuse(model, (X,), passes).graph_module
    assert before.keys() == model.state_dict().keys() == gm.state_dict().keys()
    for key, value in model.state_dict().items():
        assert not isinstance(value, Tensor) or torch.equal(value, before[key]), key
    torch.manual_seed(0)
    found = gm.eval()(X)
    torch.manual_seed(0)
    torch.testing.assert_close(found, model.eval()(X))


class Saved(nn.Module):
    """A module with a buffer that is not saved, and with state that is no tensor."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("scale", torch.ones(8), persistent=False)
        self.dense, self.steps = nn.Linear(8, 8), 0

    def forward(self, x: Tensor) -> Tensor:
        return F.gelu(self.dense(x) * cast(Tensor, self.scale) + x[0])

    def get_extra_state(self) -> dict[str, int]:
        return {"steps": self.steps}

    def set_extra_state(self, state: dict[str, int]) -> None:
        self.steps = state["steps"]


@pytest.mark.parametrize("wrap", [lambda m: m, lambda m: nn.Sequential(m, nn.ReLU())], ids=["root", "part"])
def test_checkpoints_load_both_ways(wrap: Callable[[nn.Module], nn.Module]) -> None:
    saved = Saved()
    program = wrap(saved)
    gm = fuse(program, (X,)).graph_module
    saved.steps = 3
    assert program.state_dict().keys() == gm.state_dict().keys()
    gm.load_state_dict(program.state_dict())
    program.load_state_dict(gm.state_dict())
    state = program.state_dict()
    next(value for key, value in state.items() if key.endswith("_extra_state"))["steps"] = 5
    gm.load_state_dict(state)
    assert saved.steps == 5
    del state[next(key for key in state if key.endswith("_extra_state"))]
    with pytest.raises(RuntimeError, match="_extra_state"):
        gm.load_state_dict(state)


def test_copies_and_further_fusions_keep_the_state_dict() -> None:
    program = nn.Sequential(Saved(), nn.ReLU())
    gm = fuse(program, (X,)).graph_module
    for again in (fuse(gm, (X,)).graph_module, copy.deepcopy(gm)):
        assert again.state_dict().keys() == program.state_dict().keys()
        torch.testing.assert_close(again(X), program(X))


@pytest.mark.parametrize("again", [lambda gm: pickle.loads(pickle.dumps(gm)), copy.deepcopy], ids=["pickle", "copy"])
@pytest.mark.parametrize("wrap", [lambda m: m, lambda m: nn.Sequential(m, nn.ReLU())], ids=["root", "part"])
def test_a_copy_of_a_copy_keeps_extra_state_and_what_is_not_saved(
    wrap: Callable[[nn.Module], nn.Module], again: Callable[[nn.Module], nn.Module]
) -> None:
    program = wrap(Saved())
    copied = again(again(fuse(program, (X,)).graph_module))
    assert copied.state_dict().keys() == program.state_dict().keys()
    state = program.state_dict()
    next(value for key, value in state.items() if key.endswith("_extra_state"))["steps"] = 7
    copied.load_state_dict(state)
    assert next(value for key, value in copied.state_dict().items() if key.endswith("_extra_state")) == {"steps": 7}
    torch.testing.assert_close(copied(X), program(X))


def test_an_exported_program_keeps_buffers_that_are_not_saved_out_of_checkpoints() -> None:
    exported = torch.export.export(nn.Sequential(Saved()), (X,))
    assert "0.scale" not in fuse(exported, (X,)).graph_module.state_dict()


def _hooked(register: str) -> nn.Module:
    model = nn.Sequential(nn.Linear(8, 8), nn.GELU())
    getattr(model, register)(lambda *_: None)
    return model


HOOKS = ["register_forward_hook", "register_forward_pre_hook", "register_full_backward_hook"]


@pytest.mark.parametrize("register", HOOKS)
def test_hooks_of_the_model_itself_are_refused(register: str) -> None:
    graph = fx.symbolic_trace(nn.Sequential(nn.Linear(8, 8), nn.GELU()))
    getattr(graph, register)(lambda *_: None)
    for program in (_hooked(register), graph):
        with pytest.raises(FusionError, match=r"hooks.*Remove them, fuse, and register them"):
            fuse(program, (X,))


def test_a_forward_method_of_the_instance_is_refused() -> None:
    model = nn.Sequential(nn.Linear(8, 8))
    model.forward = lambda x: x  # type: ignore[method-assign]  # what is refused
    with pytest.raises(FusionError, match="forward method of its own"):
        fuse(model, (X,))


def _with_constants(x: Tensor, b: Tensor) -> Tensor:
    return F.gelu(x + b) * torch.ones(8).cumsum(0) * torch.tensor(2.0)


def test_constants_made_in_inference_mode_can_be_trained_with() -> None:
    with torch.inference_mode():
        gm = fuse(_with_constants, (X, X[0])).graph_module
    x = X.clone().requires_grad_()
    gm(x, X[0]).sum().backward()
    expected = X.clone().requires_grad_()
    _with_constants(expected, X[0]).sum().backward()
    torch.testing.assert_close(x.grad, expected.grad)


def test_a_default_device_without_data_does_not_reach_the_graph() -> None:
    with torch.device("meta"):
        gm = fuse(_with_constants, (X, X[0])).graph_module
    torch.testing.assert_close(gm(X, X[0]), _with_constants(X, X[0]))


def test_a_program_with_branches_of_torch_is_fused_around_them() -> None:
    class Branching(nn.Module):
        def forward(self, x: Tensor, b: Tensor) -> Tensor:
            return torch.cond(x.sum() > 0, lambda t: F.gelu(t) * 2, lambda t: t * 3, (F.gelu(x + b),))

    exported = torch.export.export(Branching(), (X, X[0]))
    result = fuse(exported, (X, X[0]))
    assert result.num_matches_by_pass["bias_gelu"] == 1
    for x in (X, X.abs(), -X.abs()):
        torch.testing.assert_close(result.graph_module(x, X[0]), Branching()(x, X[0]))
    assert result.cost_before is not None
    assert result.cost_before.launches == cost(lambda x, b: F.gelu(F.gelu(x + b)) * 2, (X, X[0])).launches + 2


def _in_threads(work: Callable[[], None], count: int) -> list[BaseException]:
    errors: list[BaseException] = []

    def guarded() -> None:
        try:
            work()
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=guarded) for _ in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return errors


@pytest.fixture
def _quick_switches() -> Any:
    import sys

    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    yield
    sys.setswitchinterval(before)


def _block() -> nn.Module:
    return nn.Sequential(nn.Linear(8, 8), nn.GELU(), nn.Linear(8, 8), nn.GELU())


@pytest.mark.usefixtures("_quick_switches")
def test_threads_may_fuse_and_run_models_at_once() -> None:
    original = nn.Module.__call__

    def work() -> None:
        for _ in range(3):
            model = _block()
            torch.testing.assert_close(fuse(model, (X,)).graph_module(X), model(X))
            model(X)

    assert _in_threads(work, 4) == []
    assert nn.Module.__call__ is original


@pytest.mark.usefixtures("_quick_switches")
def test_threads_may_run_a_fusion_that_decides_when_it_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(inserted_modules, "MAX_DECISIONS", 1)
    gm = fx.symbolic_trace(lambda x, b: F.gelu(x + b))
    checked = PASSES["bias_gelu"]().call(gm).graph_module

    def work() -> None:
        for size in range(1, 40):
            checked(torch.zeros(size, 2), torch.zeros(2))

    assert _in_threads(work, 4) == []
