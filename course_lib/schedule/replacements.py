"""Replace a match: prepare a module and its operands, then put a call of the module into the graph."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from torch import fx, nn

from course_lib.errors import ScheduleError
from course_lib.fusion.calls import MODULES, ModuleAttribute, Operand, module_of, read_call
from course_lib.fusion.storage import mutating_nodes
from course_lib.fusion.surgery import erase, finish, lift, put_module_in_place_of
from course_lib.schedule.layers import COMPILERS, Flag, FusedGraph, FusedKernel, Slot, check_arity, name_of
from course_lib.schedule.matches import PatternMatch, objection_to, placed

Compiler = str | Callable[..., Any]
Prepared = tuple[nn.Module, list[Operand]]  # the module to call, and the operands to call it with


def prepare_fused(match: PatternMatch, compiler: Compiler) -> Prepared:
    """Return a module that computes the matched operators, and change nothing. Raises `ScheduleError`."""
    if isinstance(compiler, str):
        if compiler not in COMPILERS:
            raise ScheduleError(
                f"fuse got compiler={compiler!r}; it knows {', '.join(map(repr, COMPILERS))}, and functions of "
                "the operands of the pattern."
            )
        return _prepare_graph(match, compiler)
    if isinstance(compiler, nn.Module) or not callable(compiler):
        raise ScheduleError(
            f"fuse got compiler={compiler!r}; it expects a name or a function. A module goes to replace(module, match)."
        )
    _refuse_unread_parameters(match, name_of(compiler))
    return prepare_kernel(match, compiler)


def prepare_kernel(match: PatternMatch, kernel: Callable[..., Any]) -> Prepared:
    """Return a module that calls `kernel` with the operands of the pattern, in the pattern's order."""
    check_arity(kernel, match.pattern.parameters)
    operands: list[Operand] = []
    switches: dict[str, nn.Module] = {}
    arguments: list[object] = []
    for parameter in match.pattern.parameters:
        value = match.operands.get(parameter)
        if isinstance(value, ModuleAttribute) and is_flag(value):
            arguments.append(Flag(flag_of(match.anchor, value, switches)))
        elif isinstance(value, (fx.Node, ModuleAttribute)):
            arguments.append(Slot(len(operands)))
            operands.append(value)
        else:
            arguments.append(value)
    return FusedKernel(kernel, arguments, switches), operands


def prepare_module(match: PatternMatch, module: nn.Module) -> Prepared:
    """Return `module` with the operands of the pattern; it has a training flag of its own."""
    check_arity(module.forward, match.pattern.parameters)
    values = [match.operands.get(parameter) for parameter in match.pattern.parameters]
    operands = [value for value in values if isinstance(value, (fx.Node, ModuleAttribute))]
    flags = [value for value in operands if is_flag(value)]
    if len(operands) < len(values) or flags:
        raise ScheduleError(
            f"replace got a {type(module).__name__} for {match}, where the operands are {values}; a module is "
            "called with tensors, so give it the numbers and flags when it is built, and leave them out of the pattern."
        )
    return module, operands


def put_in_place(
    graph_module: fx.GraphModule, match: PatternMatch, prepared: Prepared, name: str, moved: dict[fx.Node, fx.Node]
) -> str:
    """Replace the matched nodes by a call of the prepared module, and return its name in the graph.

    `moved` maps the result of each earlier match to the call that replaced it; this match is added.
    """
    module, operands = prepared
    given = [moved.get(value, value) if isinstance(value, fx.Node) else value for value in operands]
    moved[match.anchor] = put_module_in_place_of(match.anchor, name, module, given)
    erase(match.nodes)
    finish(graph_module)
    return str(moved[match.anchor].target)


def current(match: object, path: str, graph_module: fx.GraphModule) -> PatternMatch:
    """Return `match` with its current operands; raise `ScheduleError` if it is no longer in this graph."""
    if not isinstance(match, PatternMatch):
        raise ScheduleError(
            f"{path or 'the model'} got {match!r} as a match; it expects what find returns, or one of its elements."
        )
    present = set(graph_module.graph.nodes)
    fits = (
        list(match.pattern.matches(match.anchor, mutating_nodes(graph_module.graph)))
        if set(match.nodes) <= present
        else []
    )
    fit = next((fit for fit in fits if fit.nodes == match.nodes and objection_to(fit) is None), None)
    if fit is None:
        raise ScheduleError(
            f"The match {match} is not in the graph of {path or 'the model'} any more, or never was; "
            "call find on this sub-module again."
        )
    return placed(fit, match.path, match.pattern)


def check_name(name: object) -> None:
    """Raise `ScheduleError` if `name` is not a valid name of a sub-module."""
    if not isinstance(name, str) or not name.isidentifier():
        raise ScheduleError(f"fuse got name={name!r}; it expects a Python name, such as 'fused'.")


def _prepare_graph(match: PatternMatch, compiler: str) -> Prepared:
    body = operators_of(match.nodes)
    if compiler == "torchscript" and body.opaque:
        raise ScheduleError(
            f'fuse got compiler="torchscript" for {match}, which calls {", ".join(body.opaque)} as a module; '
            "trace it with flatten=True, so that its operators are seen."
        )
    try:
        return FusedGraph(body.graph_module, compiler, body.switches), body.operands
    except Exception as error:  # whatever TorchScript refuses
        raise ScheduleError(
            f"fuse could not compile {match} with {compiler} ({type(error).__name__}: "
            f'{" ".join(str(error).split())[:160]}); use compiler="inductor" or "eager".'
        ) from error


def _refuse_unread_parameters(match: PatternMatch, kernel: str) -> None:
    """Raise if the kernel would not get a parameter that a matched module has."""
    given = {value.path for value in match.operands.values() if isinstance(value, ModuleAttribute)}
    for node in match.nodes:
        if node.op != "call_module":
            continue
        module = module_of(node)
        missing = [name for name, _ in module.named_parameters() if f"{node.target}.{name}" not in given]
        if missing:
            advice = (
                "write the operator in the pattern, with them as parameters" if type(module) in MODULES else "trace it"
            )
            raise ScheduleError(
                f"fuse got {kernel} for {match}, but {node.target} has {', '.join(missing)}, which {kernel} would "
                f"not be given; {advice}."
            )


@dataclass(frozen=True)
class OperatorGraph:
    """Hold a graph of operators, and the operands for its call."""

    graph_module: fx.GraphModule
    operands: list[Operand]
    switches: dict[str, nn.Module]  # modules whose training flags follow the operands
    opaque: tuple[str, ...]  # modules that the graph calls, because no operator is known for them


def operators_of(nodes: Sequence[fx.Node]) -> OperatorGraph:
    """Return a graph that computes `nodes` and returns the result of the last one; `nodes` do not change."""
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
    """Record the module that has a training flag, and return its name in the fused module."""
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
