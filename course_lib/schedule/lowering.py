"""Write matched nodes as a graph of their own, in which parameters and training flags are inputs."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from torch import fx, nn

from course_lib.errors import ScheduleError
from course_lib.fusion.calls import read_call
from course_lib.fusion.owned import Owned, module_of


@dataclass(frozen=True)
class Lowered:
    """Operators as a graph, and what to call it with."""

    body: fx.GraphModule
    operands: list[fx.Node | Owned]
    switches: dict[str, nn.Module]  # modules whose training flags follow the operands
    opaque: tuple[str, ...]  # modules that the graph calls, because no operator is known for them


def lower(nodes: Sequence[fx.Node]) -> Lowered:
    """Return the computation of `nodes`, which stay as they are; its result is that of the last one."""
    return _Lowering(nodes).result()


def flag_of(node: fx.Node, owned: Owned, switches: dict[str, nn.Module]) -> str:
    """Note the module that has a training flag, and return the name it has in the fused module."""
    owner = node.graph.owning_module
    assert owner is not None, "a schedule works on the graph of a GraphModule"
    path = owned.path.rpartition(".")[0]
    module, name = owner.get_submodule(path), path.replace(".", "_")
    while switches.get(name, module) is not module:  # a.b_c and a_b.c are two modules
        name += "_"
    switches[name] = module
    return name


class _Lowering:
    def __init__(self, nodes: Sequence[fx.Node]) -> None:
        self._nodes = tuple(nodes)
        self._graph = fx.Graph()
        self._values: dict[fx.Node, fx.Node] = {}
        self._inputs: dict[object, fx.Node] = {}  # operand -> placeholder
        self._operands: list[fx.Node | Owned] = []
        self._flags: dict[str, fx.Node] = {}
        self._switches: dict[str, nn.Module] = {}
        self._opaque: dict[str, nn.Module] = {}

    def result(self) -> Lowered:
        self._declare_inputs()
        for node in self._nodes:
            self._values[node] = self._write(node)
        self._graph.output(self._values[self._nodes[-1]])
        self._graph.lint()
        body = fx.GraphModule(dict(self._opaque), self._graph, "Body")
        return Lowered(body, self._operands, self._switches, tuple(self._opaque))

    def _declare_inputs(self) -> None:
        """Write placeholders: nodes and parameters first, flags last, for a graph has its inputs at the top."""
        flags: list[tuple[fx.Node, Owned]] = []
        for node in self._nodes:
            values: list[fx.Node | Owned] = [*node.all_input_nodes, *self._owned(node)]
            for value in values:
                if isinstance(value, Owned) and value.path.endswith("training"):
                    flags.append((node, value))
                elif value not in self._nodes and value not in self._inputs:
                    self._operands.append(value)
                    name = value.name if isinstance(value, fx.Node) else value.path.replace(".", "_")
                    self._inputs[value] = self._graph.placeholder(name)
        for node, owned in flags:
            name = flag_of(node, owned, self._switches)
            if owned.path not in self._flags:
                self._flags[owned.path] = self._graph.placeholder(f"{name}_training", type_expr=bool)

    def _owned(self, node: fx.Node) -> list[Owned]:
        call = read_call(node) if node.op == "call_module" else None
        return [value for value in call.arguments.values() if isinstance(value, Owned)] if call else []

    def _write(self, node: fx.Node) -> fx.Node:
        call = read_call(node) if node.op == "call_module" else None
        if call is not None:
            given = {
                name: self._value(value) for name, value in call.arguments.items() if name not in ("out", "inplace")
            }
            first = given.pop("input")
            return self._graph.call_function(call.operator.full, (first,), given)
        if node.op == "call_module":
            return self._write_opaque(node)
        return self._graph.node_copy(node, lambda used: self._values.get(used) or self._inputs[used])

    def _write_opaque(self, node: fx.Node) -> fx.Node:
        module, name = module_of(node), str(node.target).replace(".", "_")
        if module.state_dict() or any(True for _ in module.parameters()):
            raise ScheduleError(
                f"fuse got {node.target}, a {type(module).__name__} with parameters or buffers, whose names in the "
                "state dict would change; trace with flatten=True to see its operators, or keep it out of the pattern."
            )
        self._opaque[name] = module
        given = fx.map_arg((node.args, node.kwargs), lambda used: self._values.get(used) or self._inputs[used])
        return self._graph.call_module(name, *given)

    def _value(self, value: object) -> Any:
        if isinstance(value, fx.Node):
            return self._values.get(value) or self._inputs[value]
        if isinstance(value, Owned):
            return self._flags[value.path] if value.path in self._flags else self._inputs[value]
        return list(value) if isinstance(value, tuple) else value  # TorchScript takes a list where eager takes both
