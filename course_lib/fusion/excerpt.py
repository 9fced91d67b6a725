"""A match as a graph of its own: the operators as the program wrote them, with their operands as inputs."""

from collections.abc import Iterable, Sequence

import torch
from torch import fx

from course_lib.capture.captured import picklable
from course_lib.fusion.calls import Call
from course_lib.fusion.matching import Match
from course_lib.fusion.owned import Owned

Operand = fx.Node | Owned


def excerpt(match: Match) -> tuple[fx.GraphModule, Sequence[Operand]] | None:
    """Return the matched operators as a graph, and what its inputs are; None if it cannot stand alone.

    Parameters become inputs too, so that the state dict stays where it is: a module that has some is called by its
    operator. That cannot be done where the operator has a flag that follows the module, as BatchNorm has.
    """
    owner = match.anchor.graph.owning_module
    calls = sorted(match.calls, key=lambda call: call.node)
    operands = list(dict.fromkeys(value for call in calls for value in _operands(call, match)))
    if owner is None or not all(isinstance(value, fx.Node) or _is_tensor(owner, value) for value in operands):
        return None
    graph = fx.Graph()
    values = {value: graph.placeholder(f"operand_{number}") for number, value in enumerate(operands)}
    for call in calls:
        new = _written(graph, call, values) if _has_state(call) else graph.node_copy(call.node, values.__getitem__)
        new.meta = {key: value for key, value in call.node.meta.items() if key == "stack_trace"}
        values[call.node] = new
    graph.output(values[match.anchor])
    return picklable(fx.GraphModule(owner, graph, class_name="Written")), operands


def _operands(call: Call, match: Match) -> Iterable[Operand]:
    """Yield what a call takes from outside of the match."""
    inside = {one.node for one in match.calls}
    yield from (node for node in call.node.all_input_nodes if node not in inside)
    if _has_state(call):
        yield from (value for value in call.arguments.values() if isinstance(value, Owned))


def _written(graph: fx.Graph, call: Call, values: dict[Operand, fx.Node]) -> fx.Node:
    """Write the operator that a module calls, with its parameters as arguments."""
    given = {
        name: values[value] if isinstance(value, (fx.Node, Owned)) else value for name, value in call.arguments.items()
    }
    return graph.call_function(call.operator.full, (), given)  # type: ignore[arg-type]  # what a module can hold


def _has_state(call: Call) -> bool:
    return call.module is not None and bool(call.module.state_dict())


def _is_tensor(owner: torch.nn.Module, owned: Owned) -> bool:
    value: object = owner
    for name in owned.path.split("."):
        value = getattr(value, name)
    return isinstance(value, torch.Tensor)
