"""Let the state dict of a graph be that of the program: names, buffers that are not saved, and extra state.

torch.fx copies only the tensors that a graph names, saves every buffer, and knows nothing of `get_extra_state`. When
torch.fx unpickles or copies a graph, some are lost again, so a `KeptGraph` keeps them beside its code.
"""

import copy
from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import Tensor, fx, nn

_EXTRA = "_extra_state"  # how torch.nn.Module names the result of `get_extra_state` in a state dict
_HELD = "extra state of the program"  # key in the metadata of a graph module


class KeptGraph(fx.GraphModule):
    """A graph module whose state dict survives pickling and copying."""

    def __deepcopy__(self, memo: dict[int, Any]) -> "KeptGraph":
        """Return a copy as torch.fx makes it, with the state that it would lose."""
        copied = super().__deepcopy__(memo)
        assert isinstance(copied, KeptGraph), "torch.fx copies into the same class"
        keep_state(copied, copy.deepcopy(_tensors_alone(self), memo))
        return copied

    def __reduce__(self) -> tuple[Any, ...]:
        """Return how torch.fx builds this graph again, and the state that it would lose."""
        build, arguments = super().__reduce__()
        return _built_again, (build, arguments, _tensors_alone(self), self.meta.get(_HELD, {}))


def _built_again(
    build: Callable[..., fx.GraphModule], arguments: Any, tensors: nn.Module, held: Mapping[str, nn.Module]
) -> KeptGraph:
    built = build(*arguments)
    gm = KeptGraph(built, built.graph, class_name=type(built).__name__)
    keep_state(gm, tensors)
    _hook_extra_state(gm, dict(held))
    return gm


def _tensors_alone(gm: fx.GraphModule) -> nn.Module:
    """Return modules without code that hold parameters, buffers and training modes of a graph under their paths."""
    root = nn.Module()
    for path, module in gm.named_modules(remove_duplicate=False):
        if isinstance(module, torch.jit.ScriptModule):  # it is copied whole
            continue
        holder = _submodule_of(root, path)
        holder._parameters, holder._buffers = dict(module._parameters), dict(module._buffers)
        holder._non_persistent_buffers_set = set(module._non_persistent_buffers_set)
        holder.training = module.training
    return root


def keep_state(gm: fx.GraphModule, program: nn.Module) -> None:
    """Add to `gm` the state of `program` that it lacks, so that checkpoints of `program` still load, and the reverse.

    torch.fx omits parameters and buffers that the graph does not use, and a pass may leave some unused.
    """
    _keep_second_names(gm, program)
    have = gm.state_dict(keep_vars=True)
    for path, tensor in program.state_dict(keep_vars=True).items():
        if path not in have and isinstance(tensor, Tensor):
            parent, _, name = path.rpartition(".")
            hold(_submodule_of(gm, parent), name, tensor)
    _keep_out_what_is_not_saved(gm, program)
    _keep_extra_state(gm, program)
    _keep_modes(gm, program)


def _keep_second_names(gm: fx.GraphModule, program: nn.Module) -> None:
    """Give the modules of a graph all their names in the program; torch.fx keeps the first."""
    ours = dict(gm.named_modules(remove_duplicate=False))
    held = set(map(id, ours.values()))
    for path, module in program.named_modules(remove_duplicate=False):
        if path not in ours and id(module) in held:
            parent, _, name = path.rpartition(".")
            _submodule_of(gm, parent).add_module(name, module)


def _submodule_of(module: nn.Module, path: str) -> nn.Module:
    """Return the submodule at a path; what is not there is added as modules without code."""
    for name in path.split(".") if path else ():
        if not hasattr(module, name):
            module.add_module(name, nn.Module())
        module = getattr(module, name)
    return module


def hold(module: nn.Module, name: str, tensor: Tensor) -> None:
    """Register a tensor under a name: a parameter as such, any other as a buffer."""
    if isinstance(tensor, nn.Parameter):
        module.register_parameter(name, tensor)
    else:
        module.register_buffer(name, tensor)


def _keep_out_what_is_not_saved(gm: fx.GraphModule, program: nn.Module) -> None:
    """Register the buffers with `persistent=False` that the program has in this way."""
    ours = dict(gm.named_modules())
    for path, module in program.named_modules():
        holder = ours.get(path)
        if holder is not None and holder is not module:
            for name in module._non_persistent_buffers_set.intersection(holder._buffers):
                holder.register_buffer(name, holder._buffers[name], persistent=False)


def _keep_modes(gm: fx.GraphModule, program: nn.Module) -> None:
    """Set the training mode of each part by itself: a frozen BatchNorm is in another mode than the model."""
    ours = dict(gm.named_modules(remove_duplicate=False))
    for path, module in program.named_modules(remove_duplicate=False):
        if path in ours:
            ours[path].training = module.training


def _keep_extra_state(gm: fx.GraphModule, program: nn.Module) -> None:
    """Save and load the extra state of the modules of the program that are not modules of the graph."""
    ours = dict(gm.named_modules())
    held: dict[str, nn.Module] = dict(program.meta.get(_HELD, {})) if isinstance(program, fx.GraphModule) else {}
    for path, module in program.named_modules():
        own = ours.get(path)
        if _has_extra_state(module) and own is not module:
            held[path] = module
    _hook_extra_state(gm, held)


def _hook_extra_state(gm: fx.GraphModule, held: dict[str, nn.Module]) -> None:
    if held and not any(isinstance(hook, _Saving) for hook in gm._state_dict_hooks.values()):
        gm.register_state_dict_post_hook(_Saving(held))
        gm.register_load_state_dict_pre_hook(_Loading(held))
    if held:
        gm.meta[_HELD] = held


def _has_extra_state(module: nn.Module) -> bool:
    return type(module).get_extra_state is not nn.Module.get_extra_state


class _Saving:
    """Add extra state to the state dict of a graph; a class, so that a graph with this hook can be pickled."""

    def __init__(self, held: Mapping[str, nn.Module]) -> None:
        self._held = held

    def __call__(self, module: nn.Module, state: dict[str, Any], prefix: str, metadata: Mapping[str, Any]) -> None:
        for path, one in self._held.items():
            state[prefix + _key(path)] = one.get_extra_state()


class _Loading:
    """Take extra state out of a state dict that a graph loads, and hand it to the modules of the program."""

    def __init__(self, held: Mapping[str, nn.Module]) -> None:
        self._held = held

    def __call__(
        self,
        module: nn.Module,
        state: dict[str, Any],
        prefix: str,
        metadata: Mapping[str, Any],
        strict: bool,
        missing: list[str],
        unexpected: list[str],
        errors: list[str],
    ) -> None:
        for path, one in self._held.items():
            key = prefix + _key(path)
            if key in state:
                one.set_extra_state(state.pop(key))
            elif strict:
                missing.append(key)


def _key(path: str) -> str:
    return f"{path}.{_EXTRA}" if path else _EXTRA
