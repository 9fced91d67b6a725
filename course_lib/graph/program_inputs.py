"""Give a graph its inputs: those of a call of the program, by place and by name, or one for each placeholder.

A graph of `torch.export` has one placeholder for each tensor or number, wherever it lies in the inputs; its code takes
the inputs as the program does. A graph of torch.fx has one for each argument that was given.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from torch import fx
from torch.utils._pytree import TreeSpec, tree_unflatten

from course_lib.errors import GraphError

Call = tuple[tuple[object, ...], Mapping[str, object]]  # the inputs by place, and by name


def placeholder_values(
    graph: fx.Graph, inputs: Sequence[object], keyword_inputs: Mapping[str, object] | None = None
) -> tuple[Any, ...]:
    """Return a value for each placeholder from the inputs of a call; values that are already so are left as they are.

    Raises `GraphError` for inputs that the program would not take.
    """
    info, places, named = _info(graph), graph.find_nodes(op="placeholder"), dict(keyword_inputs or {})
    if info is None:
        return _by_name(places, inputs, named) if named else tuple(inputs)
    for call in ((tuple(inputs), named), _as_captured(info, inputs, named)):
        leaves = _leaves(info.in_spec, call)
        if leaves is not None:
            return leaves
    if not named and len(inputs) == len(places):
        return tuple(inputs)
    by_name = f", and {len(named)} by name ({', '.join(named)})" if named else ""
    raise GraphError(
        f"The graph takes {', '.join(info.orig_args) or 'no inputs'}, with {len(places)} tensors and numbers in all; "
        f"{len(inputs)} example inputs came by place{by_name}. Give the inputs that the program was captured with: "
        "those by place as a tuple, those by name as example_kwarg_inputs."
    )


def forward_arguments(graph: fx.Graph, values: Sequence[object]) -> tuple[Any, ...]:
    """Return what the code of a graph takes, by place, for these values of its placeholders."""
    info = _info(graph)
    if info is None or len(values) != info.in_spec.num_leaves:
        return tuple(values)
    given = tree_unflatten(list(values), info.in_spec)
    return (*given[0], *given[1].values()) if _has_names(info.in_spec) else tuple(given)


def _info(graph: fx.Graph) -> Any:
    """Return the structure of the inputs of a call, if the code of the graph takes them as they come; or None."""
    return getattr(graph._codegen, "pytree_info", None)


def _has_names(spec: TreeSpec) -> bool:
    """Return whether a structure is that of inputs by place and inputs by name."""
    return spec.type is tuple and [child.type for child in spec.children()] == [tuple, dict]


def _as_captured(info: Any, inputs: Sequence[object], named: Mapping[str, object]) -> Call:
    """Return inputs by place and by name as they were when the program was captured."""
    given = dict(zip(info.orig_args, inputs, strict=False)) | dict(named)
    by_name = info.in_spec.child(1).context if _has_names(info.in_spec) else ()
    by_place = tuple(given.pop(name) for name in info.orig_args if name in given and name not in by_name)
    return by_place, given


def _leaves(spec: TreeSpec, call: Call) -> tuple[Any, ...] | None:
    """Return the tensors and numbers of the inputs of a call in order; None if their structure is another."""
    given = call if _has_names(spec) else call[0]
    try:
        return tuple(spec.flatten_up_to(given))
    except ValueError:  # a part of another type or size
        return None


def _by_name(
    places: Sequence[fx.Node], inputs: Sequence[object], keyword_inputs: Mapping[str, object]
) -> tuple[Any, ...]:
    names = [str(node.target) for node in places]
    known = dict(zip(names, inputs, strict=False)) | dict(keyword_inputs)
    defaults = {str(node.target): node.args[0] for node in places if node.args}
    wrong = [name for name in keyword_inputs if name not in names[len(inputs) :]]
    wrong += [name for name in names if name not in known and name not in defaults]
    if wrong or len(inputs) > len(names):
        raise GraphError(
            f"The graph takes {', '.join(names) or 'no inputs'}; {len(inputs)} example inputs came by place, and by "
            f"name {', '.join(keyword_inputs)}. Give each of its inputs once."
        )
    return tuple((defaults | known)[name] for name in names)
