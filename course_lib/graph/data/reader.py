"""Read a graph from data that may come from an attacker; see `course_lib.graph.data` for the format."""

from collections.abc import Callable, Mapping
from typing import Any

import torch

from course_lib.errors import GraphError
from course_lib.graph.data.arguments import ValueReader, check_name, check_path, reason, refuse, shown
from course_lib.graph.data.modules import Owner, read_tensors
from course_lib.graph.data.targets import (
    ATTRIBUTES,
    COURSE_OPERATORS,
    INPLACE_OPERATORS,
    METHODS,
    OPERATORS,
    OWN,
    functions,
)

MAX_NODES = 10_000
MAX_KEYWORDS = 100  # of one call; Python compares each keyword with all others when it compiles the call
OPS = ("placeholder", "get_attr", "call_function", "call_method", "call_module", "output")
KEYS = {"nodes", "modules", "tensors", "training"}
NODE_KEYS = {"name", "op", "target", "args", "kwargs"}


class NodeReader:
    """Build the nodes of one graph; each node is checked before the next one is read."""

    def __init__(
        self, modules: Mapping[str, object], tensors: Mapping[str, object], own: Mapping[str, Callable[..., Any]]
    ) -> None:
        """Keep the paths that `call_module` and `get_attr` may name, and the caller's own operators."""
        self.graph = torch.fx.Graph()
        self.used: set[str] = set()
        self._modules = modules
        self._tensors = tensors
        self._nodes: dict[str, torch.fx.Node] = {}
        self._values = ValueReader(self._nodes)
        assert all(name.startswith(OWN) for name in own), "no name of the caller hides one of the table"
        self._functions = {**own, **functions()}
        self._parameters: set[str] = set()

    def read_all(self, nodes: object) -> torch.fx.Graph:
        """Return the graph of a list of nodes, whose last node must be its only output."""
        if type(nodes) is not list or not 0 < len(nodes) <= MAX_NODES:
            refuse("The graph", f"its nodes are no list of 1 to {MAX_NODES} nodes")
        for number, node in enumerate(nodes):
            self._read(node, number, is_last=number == len(nodes) - 1)
        clash = {name for name in self._parameters & self._nodes.keys() if self._nodes[name].target != name}
        if clash:
            refuse("The graph", f"an input and another node are both called {shown(min(clash))}")
        return self.graph

    def _read(self, data: object, number: int, *, is_last: bool) -> None:
        where = f"Node number {number}"
        if type(data) is not dict or data.keys() != NODE_KEYS:
            refuse(where, f"a node is written as an object with the keys {', '.join(sorted(NODE_KEYS))}")
        name, op = check_name(data["name"], where), data["op"]
        where = f"Node {name!r}"
        if name in self._nodes:
            refuse(where, "another node has the same name")
        if type(op) is not str or op not in OPS:
            refuse(where, f"its op is {shown(op)}; allowed are {', '.join(OPS)}")
        if (op == "output") != is_last:
            refuse(where, "a graph has one output, and it is the last node")
        if type(data["args"]) is not list or type(data["kwargs"]) is not dict:
            refuse(where, "its args are not a list, or its kwargs are not an object")
        if len(data["kwargs"]) > MAX_KEYWORDS:
            refuse(where, f"it has {len(data['kwargs']):,} keyword arguments; a call has at most {MAX_KEYWORDS}")
        args = tuple(self._values.read(arg, where) for arg in data["args"])
        kwargs = {check_name(key, where): self._values.read(arg, where) for key, arg in data["kwargs"].items()}
        target = self._target(op, data["target"], args, kwargs, where)
        node = self.graph.create_node(op, target, args, kwargs, name=name)  # type: ignore[arg-type]
        if node.name != name:  # torch.fx renames a node that would hide a builtin
            refuse(where, f"its name hides a name that Python or torch.fx uses; {node.name!r} would be free")
        self._nodes[name] = node

    def _target(
        self, op: str, target: object, args: tuple[object, ...], kwargs: dict[str, object], where: str
    ) -> object:
        if op == "call_function":
            return self._function(target, args, kwargs, where)
        if op == "call_method":
            if type(target) is not str or target not in METHODS:
                refuse(
                    where,
                    f"{shown(target)} is no method that a graph may call; allowed are {', '.join(sorted(METHODS))}",
                )
            if not args or not isinstance(args[0], torch.fx.Node):
                refuse(where, "the first argument of a method is the node whose method it is")
            return target
        if op == "call_module":
            return self._owned(target, self._modules, "module", where)
        if kwargs or len(args) != {"get_attr": 0, "output": 1}.get(op, len(args)):
            refuse(where, f"a node of op {op!r} does not take these arguments")
        if op == "get_attr":
            return self._owned(target, self._tensors, "tensor", where)
        if op == "placeholder":
            return self._placeholder(target, args, where)
        if target != "output":
            refuse(where, "the target of the output is 'output'")
        return target

    def _function(self, name: object, args: tuple[object, ...], kwargs: dict[str, object], where: str) -> object:
        if type(name) is not str or name not in self._functions:
            hint = ""
            if type(name) is str and name.split(".")[-1] in COURSE_OPERATORS:
                hint = (
                    "; importing course_lib.kernels registers the course's operators, and this process has not done so"
                )
            refuse(where, f"{shown(name)} is not among the functions that a graph may call{hint}")
        library, _, short = name.rpartition(".")
        if library == "operator":
            # Generated code shows operators as `a + b`, and would silently leave out any other argument.
            if kwargs or len(args) != OPERATORS.get(short, 2):
                refuse(where, f"operator.{short} takes {OPERATORS.get(short, 2)} arguments and no keywords")
            if short in INPLACE_OPERATORS and not isinstance(args[0], torch.fx.Node):
                refuse(where, f"operator.{short} changes its first argument, which must be a node")
        if short == "getattr":
            if kwargs or len(args) != 2 or not isinstance(args[0], torch.fx.Node) or type(args[1]) is not str:
                refuse(where, "getattr takes a node and the name of an attribute")
            if args[1] not in ATTRIBUTES:
                refuse(where, f"getattr may read {', '.join(sorted(ATTRIBUTES))}, and not {shown(args[1])}")
        return self._functions[name]

    def _owned(self, path: object, owned: Mapping[str, object], what: str, where: str) -> str:
        if type(path) is not str or path not in owned:
            refuse(where, f"the graph has no {what} at {shown(path)}")
        self.used.add(path)
        return path

    def _placeholder(self, target: object, args: tuple[object, ...], where: str) -> str:
        name = check_name(target, where)
        if name in self._parameters:
            refuse(where, f"another input is called {shown(name)} too")
        if len(self._parameters) != len(self._nodes):
            refuse(where, "inputs come before all other nodes")
        if len(args) > 1 or not all(arg is None or type(arg) in (bool, int, float, str) for arg in args):
            refuse(where, "an input takes at most one default, which is None, a bool, a number or a text")
        self._parameters.add(name)
        return name


def from_data(
    data: Mapping[str, object],
    tensors: Mapping[str, torch.Tensor],
    *,
    own: Mapping[str, Callable[..., Any]] | None = None,
) -> torch.fx.GraphModule:
    """Return a graph module built from `data`, which may come from an attacker.

    The graph is not run, and only functions and modules of the allow-list can be used, and those that the caller adds
    in `own`, by names that begin with "own.". The tensors are not copied.
    Raises `GraphError`, which names the node, module or tensor, for data that `to_data` would not write.
    """
    if not isinstance(data, dict) or not {"nodes", "modules", "tensors"} <= data.keys() <= KEYS:
        refuse("The graph", f"it is {shown(data)} and not an object with the keys {', '.join(sorted(KEYS))}")
    training = data.get("training", True)
    if type(training) is not bool:
        refuse("The graph", "its training flag is neither true nor false")
    modules, entries = _paths(data["modules"], "Module"), _paths(data["tensors"], "Tensor")
    reader = NodeReader(modules, entries, own or {})
    graph = reader.read_all(data["nodes"])
    owner = Owner()
    expected = owner.add_modules(modules)
    for path, tensor in read_tensors(entries, tensors).items():
        parameter = isinstance(tensor, torch.nn.Parameter)
        owner.add_tensor(path, tensor, parameter=parameter, expected=expected.get(path))
    _check_use(modules, entries, expected, reader.used)
    owner.root.training = training
    return _graph_module(owner.root, graph)


def _paths(entries: object, what: str) -> dict[str, object]:
    if type(entries) is not dict or len(entries) > MAX_NODES:
        refuse("The graph", f"its {what.lower()}s are no object of at most {MAX_NODES} paths")
    return {check_path(path, f"{what} {shown(path)}"): entry for path, entry in entries.items()}


def _check_use(
    modules: Mapping[str, object], entries: Mapping[str, object], expected: Mapping[str, object], used: set[str]
) -> None:
    """Refuse modules and tensors that no node uses, and modules that lack a tensor."""
    for path in modules.keys() - used:
        refuse(f"Module {path!r}", "no node calls it; leave it out")
    for path in entries.keys() - used - expected.keys():
        refuse(f"Tensor {path!r}", "no node reads it; leave it out")
    for path in expected.keys() - entries.keys():
        refuse(f"Tensor {path!r}", "its module needs it, and it did not come with the graph")


def _graph_module(root: torch.nn.Module, graph: torch.fx.Graph) -> torch.fx.GraphModule:
    try:
        shadowed = set(graph.python_code("self").globals) & {node.target for node in graph.find_nodes(op="placeholder")}
        if shadowed:
            refuse("The graph", f"its input {shown(min(map(str, shadowed)))} hides a name that its code uses")
        graph.lint()
        gm = torch.fx.GraphModule(root, graph)
        gm.graph.lint()
    except GraphError:
        raise
    except Exception as error:  # torch.fx raises many types of error if it cannot generate code
        refuse("The graph", f"torch.fx cannot make code of it ({reason(error)})")
    return gm
