"""Which modules are calls of an operator, and what they give it besides their input."""

import functools
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from torch import fx, nn

from course_lib.errors import FusionError


@dataclass(frozen=True)
class Owned:
    """An attribute that a module of the graph holds, such as `norm.weight`; it is read when the graph runs."""

    path: str

    def __str__(self) -> str:
        return self.path


# Class of module -> operator, and parameter of the operator -> attribute of the module.
MODULES: Mapping[type[nn.Module], tuple[str, str]] = {
    nn.GELU: ("gelu", "approximate"),
    nn.ReLU: ("relu", "inplace"),
    nn.SiLU: ("silu", "inplace"),
    nn.Sigmoid: ("sigmoid", ""),
    nn.Tanh: ("tanh", ""),
    nn.Dropout: ("dropout", "p training inplace"),
    nn.Softmax: ("softmax", "dim"),
    nn.LayerNorm: ("layer_norm", "normalized_shape weight bias eps"),
    nn.Linear: ("linear", "weight bias"),
    nn.Conv1d: ("conv1d", "weight bias stride padding dilation groups"),
    nn.Conv2d: ("conv2d", "weight bias stride padding dilation groups"),
    nn.BatchNorm1d: ("batch_norm", "running_mean running_var weight bias training momentum eps"),
    nn.BatchNorm2d: ("batch_norm", "running_mean running_var weight bias training momentum eps"),
}
_READ_LATE = frozenset("weight bias running_mean running_var training".split())  # noqa: SIM905  # may change later


def owned_arguments(path: str, module: nn.Module) -> tuple[str, dict[str, object]] | None:
    """Return the operator that a module calls and the arguments that it gives, or None if no operator is known for it.

    A subclass is read as its base class, so that a pass can say why it leaves it alone.
    """
    found = _known_module(module)
    if found is None:
        return None
    name, attributes = found
    return name, {attribute: _attribute(path, module, attribute) for attribute in attributes}


def operator_name_of(module: nn.Module) -> str | None:
    """Return the name of the operator that a module calls, or None."""
    found = _known_module(module)
    return None if found is None else found[0]


def _known_module(module: nn.Module) -> tuple[str, tuple[str, ...]] | None:
    if getattr(module, "padding_mode", "zeros") != "zeros":  # such a convolution pads first, which is another operator
        return None
    kind: Any = type(module)
    return _known_class(kind)


@functools.cache
def _known_class(kind: Any) -> tuple[str, tuple[str, ...]] | None:
    found = next((entry for cls, entry in MODULES.items() if issubclass(kind, cls)), None)
    return None if found is None else (found[0], tuple(found[1].split()))


def module_of(node: fx.Node) -> nn.Module:
    """Return the module that a node calls."""
    owner = node.graph.owning_module
    if owner is None:
        raise FusionError(f"The graph of {node} belongs to no GraphModule, so its module {node.target} is unknown.")
    module: nn.Module = owner
    for name in str(node.target).split("."):
        found = module._modules.get(name)  # as get_submodule does, without asking for each name twice
        if found is None:
            return owner.get_submodule(str(node.target))
        module = found
    return module


def _attribute(path: str, module: nn.Module, attribute: str) -> object:
    value = getattr(module, attribute)
    return Owned(f"{path}.{attribute}") if attribute in _READ_LATE and value is not None else value
