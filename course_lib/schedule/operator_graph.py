"""Matched operators as a graph of their own, in which parameters and training flags are inputs."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from torch import fx, nn

from course_lib.errors import ScheduleError
from course_lib.fusion.calls import ModuleAttribute, Operand, module_of, read_call
from course_lib.fusion.surgery import lift


@dataclass(frozen=True)
class OperatorGraph:
    """Operators as a graph, and what to call it with."""

    graph_module: fx.GraphModule
    operands: list[Operand]
    switches: dict[str, nn.Module]  # modules whose training flags follow the operands
    opaque: tuple[str, ...]  # modules that the graph calls, because no operator is known for them


def operators_of(nodes: Sequence[fx.Node]) -> OperatorGraph:
    """Return the computation of `nodes`, which stay as they are; its result is that of the last one."""
    operands = _operands(nodes)
    switches: dict[str, nn.Module] = {}
    flags: dict[Operand, str] = {
        flag: f"{flag_of(node, flag, switches)}_training" for node in nodes for flag in _flags(node)
    }
    opaque: dict[str, nn.Module] = {}

    def write(graph: fx.Graph, node: fx.Node, values: Mapping[Operand, fx.Node]) -> fx.Node:
        if node.op != "call_module":
            return graph.node_copy(node, values.__getitem__)
        call = read_call(node)
        if call is None:
            return _call_as_module(graph, node, values, opaque)
        given = {
            name: _argument(value, values) for name, value in call.arguments.items() if name not in ("out", "inplace")
        }
        first = given.pop("input")
        return graph.call_function(call.operator.full, (first,), given)

    names = {value: value.name if isinstance(value, fx.Node) else value.path.replace(".", "_") for value in operands}
    graph, values = lift(nodes, {**names, **flags}, write)
    for flag in flags:
        values[flag].type = bool  # TorchScript takes an input without a type as a tensor
    graph.output(values[nodes[-1]])
    graph.lint()
    return OperatorGraph(fx.GraphModule(dict(opaque), graph, "Body"), operands, switches, tuple(opaque))


def flag_of(node: fx.Node, flag: ModuleAttribute, switches: dict[str, nn.Module]) -> str:
    """Note the module that has a training flag, and return the name it has in the fused module."""
    owner = node.graph.owning_module
    assert owner is not None, "a schedule works on the graph of a GraphModule"
    path = flag.path.rpartition(".")[0]
    module, name = owner.get_submodule(path), path.replace(".", "_")
    while switches.get(name, module) is not module:  # a.b_c and a_b.c are two modules
        name += "_"
    switches[name] = module
    return name


def is_flag(value: object) -> bool:
    """Return whether an operand is the training flag of a module."""
    return isinstance(value, ModuleAttribute) and value.path.endswith("training")


def _operands(nodes: Sequence[fx.Node]) -> list[Operand]:
    """Return what the nodes read from outside, in the order in which they read it, without training flags."""
    read: list[Operand] = []
    for node in nodes:
        read.extend(node.all_input_nodes)
        read.extend(_held_by(node))
    return [value for value in dict.fromkeys(read) if value not in nodes and not is_flag(value)]


def _flags(node: fx.Node) -> list[ModuleAttribute]:
    return [value for value in _held_by(node) if is_flag(value)]


def _held_by(node: fx.Node) -> list[ModuleAttribute]:
    call = read_call(node) if node.op == "call_module" else None
    return [value for value in call.arguments.values() if isinstance(value, ModuleAttribute)] if call else []


def _call_as_module(
    graph: fx.Graph, node: fx.Node, values: Mapping[Operand, fx.Node], opaque: dict[str, nn.Module]
) -> fx.Node:
    module, name = module_of(node), str(node.target).replace(".", "_")
    if module.state_dict() or any(True for _ in module.parameters()):
        raise ScheduleError(
            f"fuse got {node.target}, a {type(module).__name__} with parameters or buffers, whose names in the "
            "state dict would change; trace with flatten=True to see its operators, or keep it out of the pattern."
        )
    opaque[name] = module
    given = fx.map_arg((node.args, node.kwargs), values.__getitem__)
    return graph.call_module(name, *given)


def _argument(value: object, values: Mapping[Operand, fx.Node]) -> Any:
    if isinstance(value, (fx.Node, ModuleAttribute)):
        return values[value]
    return list(value) if isinstance(value, tuple) else value  # TorchScript takes a list where eager takes both
