"""Where the arguments of an operator come from in a returned graph: which input, parameter, module or earlier call.

Numbers show a wrong argument too, but they do not name it. An origin is read from the graph as data, through steps that
only change a shape. If anything else was computed in between, the origin is unknown, and numbers alone decide.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from autograder.host.artifacts import Artifact

SHAPES = (
    *("chunk", "contiguous", "expand", "flatten", "movedim", "permute", "reshape", "select", "split", "squeeze"),
    *("swapaxes", "t", "transpose", "unbind", "unflatten", "unsqueeze", "view"),
)
LINEAR = "torch.nn.functional.linear"


def input_named(name: str) -> str:
    """Return the origin of an input."""
    return f"the input `{name}`"


def tensor_at(path: str) -> str:
    """Return the origin of a parameter or buffer."""
    return f"`{path}`"


def output_of(path: str) -> str:
    """Return the origin of what a module with parameters computes; a linear layer may also be a function."""
    return f"the output of `{path}`"


def result_of(number: int) -> str:
    """Return the origin of the result of an earlier call of the same operator."""
    return f"the result of call number {number}"


@dataclass(frozen=True)
class Wiring:
    """The names of an operator's arguments in order, and for each of its calls the origins of some of them."""

    arguments: Sequence[str]
    calls: Sequence[Mapping[str, str]]

    def fault(self, artifact: Artifact, target: str) -> str:
        """Return a clause about the first call of `target` with another origin; empty if there is none."""
        nodes = {node["name"]: node for node in artifact.graph["nodes"]}
        calls = [n for n in nodes.values() if n["op"] == "call_function" and _is(n["target"], target)]
        if len(calls) != len(self.calls):
            return ""
        results = {node["name"]: result_of(number) for number, node in enumerate(calls, 1)}
        for number, (node, expected) in enumerate(zip(calls, self.calls, strict=True), 1):
            given = dict(zip(self.arguments, node["args"], strict=False)) | node["kwargs"]
            for name, origin in expected.items():
                found = _origin(given.get(name), nodes, results)
                if found and found != origin:
                    return f"call number {number} of {target} gets {found} as {name}; expected {origin}"
        return ""

    def computed(self, artifact: Artifact, target: str) -> str:
        """Return a clause about the first argument of a call of `target` that was computed on its way; empty if none.

        A right answer may compute something there, so this only explains wrong numbers.
        """
        nodes = {node["name"]: node for node in artifact.graph["nodes"]}
        calls = [n for n in nodes.values() if n["op"] == "call_function" and _is(n["target"], target)]
        for number, (node, expected) in enumerate(zip(calls, self.calls, strict=False), 1):
            given = dict(zip(self.arguments, node["args"], strict=False)) | node["kwargs"]
            for name, origin in expected.items():
                if step := _step(given.get(name), nodes):
                    return f"call number {number} of {target} gets as {name} the result of {step}, not {origin} itself"
        return ""


def layers_as_functions(artifact: Artifact) -> list[str]:
    """Return the paths of the linear layers whose weights calls of `LINEAR` read, in order."""
    nodes = {node["name"]: node for node in artifact.graph["nodes"]}
    weights = (nodes[_name(n["args"][1:2])] for n in nodes.values() if n["target"] == LINEAR and _name(n["args"][1:2]))
    return [str(weight["target"]).removesuffix(".weight") for weight in weights]


def _is(name: str, target: str) -> bool:
    return name == target or name.startswith(f"{target}.")


def _origin(value: Any, nodes: Mapping[str, Mapping[str, Any]], results: Mapping[str, str]) -> str:
    """Return the origin of an argument; empty if it is computed from something in another way."""
    while isinstance(value, dict) and "node" in value:
        node = nodes[value["node"]]
        op, target = node["op"], str(node["target"])
        if node["name"] in results:
            return results[node["name"]]
        if op in ("placeholder", "get_attr"):
            return (input_named if op == "placeholder" else tensor_at)(target)
        if op == "call_module":
            return output_of(target)
        if target == LINEAR:
            weight = nodes.get(_name(node["args"][1:2]), {})
            return output_of(str(weight["target"]).removesuffix(".weight")) if weight.get("op") == "get_attr" else ""
        if target.removeprefix("torch.") not in SHAPES or not node["args"]:
            return ""
        value = node["args"][0]
    return "nothing" if value is None else "a constant"


def _step(value: Any, nodes: Mapping[str, Mapping[str, Any]]) -> str:
    """Return the function or method that computed an argument from others; empty if it only changes a shape."""
    while isinstance(value, dict) and "node" in value:
        node = nodes[value["node"]]
        target = str(node["target"])
        if node["op"] not in ("call_function", "call_method") or target == LINEAR:
            return ""
        if target.removeprefix("torch.") not in SHAPES:
            return target
        value = node["args"][0] if node["args"] else None
    return ""


def _name(arguments: Sequence[Any]) -> str:
    return str(arguments[0].get("node", "")) if arguments and isinstance(arguments[0], dict) else ""
