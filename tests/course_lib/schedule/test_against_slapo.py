"""The same schedules through slapo 0.0.3, the library whose language ours follows: where both work, both agree.

slapo is loaded from a folder of its own, where `make test` puts it, since its wheel brings along packages named `tests`
and `examples`.
"""

import copy
import importlib.util
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.nn.functional as F
import transformers.modeling_utils
import transformers.pytorch_utils
from torch import nn

from course_lib.schedule import call_module, create_schedule
from tests.course_lib.schedule.models import TOKENS, Escaping, huggingface_bert, our_encoder

FOLDER = Path(__file__).parents[3] / "work" / "slapo"


@pytest.fixture(scope="module")
def slapo() -> Iterator[Any]:
    """Load slapo, with the class that it expects in `transformers.modeling_utils`, where it was until 2024."""
    patch = pytest.MonkeyPatch()
    conv1d = transformers.pytorch_utils.Conv1D
    patch.setattr(transformers.modeling_utils, "Conv1D", conv1d, raising=False)
    spec = importlib.util.spec_from_file_location(
        "slapo", FOLDER / "slapo" / "__init__.py", submodule_search_locations=[str(FOLDER / "slapo")]
    )
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    patch.setitem(sys.modules, "slapo", module)
    spec.loader.exec_module(module)
    assert module.__version__ == "0.0.3"
    yield module
    for name in [name for name in sys.modules if name.startswith("slapo.")]:
        del sys.modules[name]
    patch.undo()


# slapo reads the source of a pattern and runs it inside its own module: no annotations, no lambda, and the names
# F and call_module are slapo's there, ours here.
def bias_gelu(x, bias):  # type: ignore[no-untyped-def]  # see above
    return F.gelu(x + bias)


def after_projection(x, bias, residual):  # type: ignore[no-untyped-def]  # see above
    return call_module(".*[nN]orm", call_module("dropout", x + bias) + residual)


def difference(x):  # type: ignore[no-untyped-def]  # see above
    return torch.relu(x.sum(-1, keepdim=True) - x)


# Model, the part to trace, the pattern, and how many operators a match has. The linear layer is `dense` everywhere.
EXAMPLES: dict[str, tuple[Callable[[], nn.Module], str, Callable[..., object], int]] = {
    "bias and GELU in our encoder": (our_encoder, "layers.0.feed_forward", bias_gelu, 2),
    "bias and GELU in Hugging Face's": (huggingface_bert, "bert.encoder.layer.0.intermediate", bias_gelu, 2),
    "what follows the attention": (huggingface_bert, "bert.encoder.layer.1.attention.output", after_projection, 4),
    "what follows the feed-forward": (huggingface_bert, "bert.encoder.layer.0.output", after_projection, 4),
}


def results(model: nn.Module) -> dict[str, torch.Tensor]:
    """Return what the model computes in both modes, and all gradients, with dropout from the same random state."""
    found = {}
    for training in (False, True):
        torch.manual_seed(3)
        model.train(training).zero_grad()
        result = model(TOKENS)
        found[f"result {training}"] = getattr(result, "logits", result)
        found[f"result {training}"].square().mean().backward()
        for name, parameter in model.named_parameters():
            if parameter.grad is not None:
                # slapo renames the parameters of what it fuses, see the last test
                found[f"{training} {name.replace('FusedModule_0.', '')}"] = parameter.grad.clone()
    return found


def assert_same(model: nn.Module, other: nn.Module) -> None:
    expected, found = results(model), results(other)
    assert found.keys() == expected.keys()
    assert len(found) > 20
    for name, value in expected.items():
        torch.testing.assert_close(found[name], value, msg=lambda told, name=name: f"{name}: {told}")


def built(slapo: Any, theirs: Any) -> nn.Module:
    model: nn.Module = slapo.build(theirs, init_weights=False)[0]  # with weights it asks for a CUDA device
    return model


@pytest.mark.parametrize("case", EXAMPLES)
def test_both_find_the_same_operators_and_fuse_them_to_the_same_model(case: str, slapo: Any) -> None:
    build, path, pattern, size = EXAMPLES[case]
    model = build()
    ours, theirs = create_schedule(model), slapo.create_schedule(copy.deepcopy(model))
    for schedule in (ours, theirs):
        schedule[path]["dense"].decompose()
        schedule[path].trace(flatten=True)
    matches, found = ours[path].find(pattern), theirs[path].find(pattern)
    assert [len(match.nodes) for match in matches] == [len(match) for match in found] == [size]
    ours[path].fuse(matches, compiler="torchscript")
    theirs[path].fuse(found, compiler="TorchScript")
    assert_same(model, ours.build())
    assert_same(model, built(slapo, theirs))


def test_both_replace_a_part_and_checkpoint_another(slapo: Any) -> None:
    class Tanh(nn.Module):
        def forward(self, hidden: torch.Tensor) -> torch.Tensor:
            return torch.tanh(hidden)

    model = huggingface_bert()
    ours, theirs = create_schedule(model), slapo.create_schedule(copy.deepcopy(model))
    for schedule in (ours, theirs):
        schedule["bert.encoder.layer.0.intermediate.intermediate_act_fn"].replace(Tanh())
        schedule["bert.encoder.layer.1.output"].checkpoint()
    with pytest.raises(AssertionError):
        assert_same(model, ours.build())  # tanh is not GELU
    found = results(ours.build())
    for name, value in results(built(slapo, theirs)).items():
        torch.testing.assert_close(found[name.replace("output.mod.", "output.")], value)


def find_in(library: Any, model: nn.Module, pattern: Callable[..., object]) -> int:
    """Return how many matches a library finds in a model whose linear layer was decomposed."""
    schedule = library(model)
    if hasattr(model, "dense"):
        schedule["dense"].decompose()
    schedule.trace(flatten=True)
    return len(schedule.find(pattern))


class Difference(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.relu(x - x.sum(-1, keepdim=True))


@pytest.mark.parametrize(
    ("model", "pattern"), [(Escaping, bias_gelu), (Difference, difference)], ids=["escaping value", "operand order"]
)
def test_slapo_takes_look_alikes_that_ours_leaves_alone(
    model: Callable[[], nn.Module], pattern: Callable[..., object], slapo: Any
) -> None:
    assert find_in(create_schedule, model(), pattern) == 0
    assert find_in(slapo.create_schedule, model(), pattern) == 1


def test_a_fused_layer_norm_keeps_its_names_with_ours_and_loses_them_with_slapo(slapo: Any) -> None:
    model = huggingface_bert()
    ours, theirs = create_schedule(model), slapo.create_schedule(copy.deepcopy(model))
    for schedule in (ours, theirs):
        part = schedule["bert.encoder.layer.0.output"]
        part["dense"].decompose()
        part.trace(flatten=True)
        part.fuse(part.find(after_projection), compiler="torchscript" if schedule is ours else "TorchScript")
    names = model.state_dict().keys()
    assert ours.build().state_dict().keys() == names
    assert built(slapo, theirs).state_dict().keys() != names
