"""A graph as data, so that it can leave the process that made it without taking code along.

    data, tensors = to_data(gm)
    gm = from_data(json.loads(json.dumps(data)), tensors)

The format, which holds nothing but JSON values:

    {"nodes":   [{"name", "op", "target", "args", "kwargs"}, ...],         in order, the last one the output
     "modules": {path: {"class": "torch.nn.SiLU", "arguments": {...}, "training": true}, ...},
     "tensors": {path: {"parameter": true}, ...},                          "requires_grad": false if frozen,
                                                                           "same_as": path if tied to an earlier one
     "training": true}                                                     of the graph module itself

Beside it goes a dict from path to tensor: parameters, buffers and constants, also those of the modules. Targets of
functions are names from the table in `data_targets.py`, modules are those of `data_modules.py`, and arguments are
written as described in `data_values.py`. Metadata of nodes (shapes, source lines) is left behind.
"""

from collections.abc import Mapping

import torch

from course_lib.errors import GraphError
from course_lib.graph.data_names import check_path, reason, refuse, shown
from course_lib.graph.data_owner import Owner, read_tensors
from course_lib.graph.data_reading import MAX_NODES, NodeReader
from course_lib.graph.data_writing import GraphWriter

KEYS = {"nodes", "modules", "tensors", "training"}


def to_data(gm: torch.fx.GraphModule) -> tuple[dict[str, object], dict[str, torch.Tensor]]:
    """Return the graph of `gm` as JSON values, and its tensors by path.

    The tensors are detached, and share their memory with those of `gm`. The same graph gives equal data each time.
    Raises `GraphError`, naming the node, for functions, modules or arguments that are not on the allow-list.
    """
    writer = GraphWriter(gm)
    data = {
        "nodes": [writer.write_node(node) for node in gm.graph.nodes],
        "modules": writer.modules,
        "tensors": writer.entries,
        "training": gm.training,
    }
    return data, writer.tensors


def from_data(data: Mapping[str, object], tensors: Mapping[str, torch.Tensor]) -> torch.fx.GraphModule:
    """Return a graph module built from `data`, which may come from an attacker.

    Nothing of the graph is run, and nothing is reached but the functions and modules of the allow-list. The tensors
    are used without copying. Raises `GraphError`, naming the node, module or tensor, for anything that `to_data`
    would not write.
    """
    if not isinstance(data, dict) or not {"nodes", "modules", "tensors"} <= data.keys() <= KEYS:
        refuse("The graph", f"it is {shown(data)} and not an object with the keys {', '.join(sorted(KEYS))}")
    training = data.get("training", True)
    if type(training) is not bool:
        refuse("The graph", "its training flag is neither true nor false")
    modules, entries = _paths(data["modules"], "Module"), _paths(data["tensors"], "Tensor")
    reader = NodeReader(modules, entries)
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
    """Refuse what no node uses, and modules that lack a tensor: a graph holds what it needs and nothing beside it."""
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
    except Exception as error:  # torch.fx reports what it cannot make code of in many ways
        refuse("The graph", f"torch.fx cannot make code of it ({reason(error)})")
    return gm
