"""One sub-module as a graph; everything around it stays as it was."""

from collections.abc import Sequence

import torch.nn.functional as F
from torch import fx, nn

from course_lib.capture import capture
from course_lib.errors import CaptureError, ScheduleError
from course_lib.fusion.kept_state import keep_state
from course_lib.module_hooks import has_hooks, has_own_hooks
from course_lib.schedule.layers import Checkpointed, FusedGraph, FusedKernel

Leaf = str | type[nn.Module]
_OPAQUE = (FusedGraph, FusedKernel, Checkpointed)  # modules that a schedule made stay one node


def trace_module(path: str, module: nn.Module, flatten: bool, leaf_modules: Sequence[Leaf]) -> fx.GraphModule:
    """Return `module` as a graph that shares its parameters and sub-modules; raise `ScheduleError` if not possible.

    Activations of transformers are replaced by equivalent ones of torch.nn, so that patterns match them.
    """
    if isinstance(leaf_modules, (str, type)):
        raise ScheduleError(
            f"trace got leaf_modules={leaf_modules!r}; it expects several, such as ({leaf_modules!r},)."
        )
    activations = [type(part) for part in module.modules() if _twin(part) is not None]
    leaves = [*_leaves(path, module, leaf_modules), *_OPAQUE, *activations]
    if not flatten:
        leaves += [name for name, _ in module.named_children()]
    try:
        graph_module = capture(module, leaf_modules=leaves).graph_module
    except CaptureError as error:
        raise ScheduleError(
            f"trace of {path or 'the model'} failed, so it is as it was; trace a part of it, or name what stands in "
            f"the way in leaf_modules. {error}"
        ) from error
    graph_module._tracer_cls = None  # pickling would make a tracer of our class, without its arguments
    _refuse_lost_hooks(path, module, graph_module)
    for node in graph_module.graph.find_nodes(op="call_module"):
        twin = _twin(graph_module.get_submodule(str(node.target)))
        if twin is not None:
            graph_module.set_submodule(str(node.target), twin)
    _keep_the_rest(graph_module, module)
    return graph_module


def _leaves(path: str, module: nn.Module, given: Sequence[Leaf]) -> list[Leaf]:
    """Return the leaves as classes and paths; a string is a path or the name of a class."""
    paths = {name for name, _ in module.named_modules() if name}
    classes = {type(part).__name__: type(part) for part in module.modules()}
    found: list[Leaf] = []
    for leaf in given:
        if isinstance(leaf, type) or leaf in paths:
            found.append(leaf)
        elif leaf in classes:
            found.append(classes[leaf])
        else:
            raise ScheduleError(
                f"trace got {leaf!r} in leaf_modules, but {path or 'the model'} has no such path or class; it has "
                f"{', '.join(sorted(paths)) or 'no parts'}."
            )
    return found


def _twin(module: nn.Module) -> nn.Module | None:
    """Return the torch.nn activation that is equivalent to an activation of transformers, or None.

    transformers is not imported: its classes are recognised by name, and by the function that they hold.
    """
    if not type(module).__module__.startswith("transformers.") or type(module).__name__ != "GELUActivation":
        return None
    return nn.GELU().train(module.training) if getattr(module, "act", None) is F.gelu else None


def _refuse_lost_hooks(path: str, module: nn.Module, graph_module: fx.GraphModule) -> None:
    """Raise if a module with hooks was traced into: only a module that stays one node keeps them."""
    called = tuple(str(node.target) for node in graph_module.graph.find_nodes(op="call_module"))
    for name, part in module.named_modules():
        hooked = has_hooks(part) if name else has_own_hooks(part)  # the graph itself is called as a module
        inside = any(name == leaf or name.startswith(f"{leaf}.") for leaf in called)
        if hooked and not inside:
            where = ".".join(filter(None, (path, name))) or "the model"
            raise ScheduleError(
                f"trace of {path or 'the model'} would lose the hooks of {where}; remove them, or make it a leaf."
            )


def _keep_the_rest(graph_module: fx.GraphModule, module: nn.Module) -> None:
    """Keep the unused parameters and plain attributes of the module, which other code may read."""
    keep_state(graph_module, module)
    for name, part in module.named_modules():  # each part may be in a mode of its own
        if _has(graph_module, name):
            graph_module.get_submodule(name).training = part.training
    for name, value in vars(module).items():
        if not name.startswith("_") and not hasattr(graph_module, name):
            setattr(graph_module, name, value)


def _has(module: nn.Module, path: str) -> bool:
    try:
        module.get_submodule(path)
    except AttributeError:
        return False
    return True
