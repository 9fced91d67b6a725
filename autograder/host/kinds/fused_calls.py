"""What is wrong with the calls of a rewritten graph: a number, the order of two arguments, or a write that is gone.

The graph is read as data, and what a call is comes from the allow-list. These sentences explain wrong results only.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any

from autograder.host.artifacts import Artifact
from autograder.host.artifacts.operator_calls import read_calls
from autograder.host.traced import Traced
from autograder.protocol import GraphData
from course_lib.graph.data.targets import functions

Given = Mapping[str, Any]
"""The arguments of a call in a graph's data, by their names."""


def differing_literals(artifact: Artifact, operator: str, program: Traced) -> str:
    """Return a sentence about a number or flag of the fused call that is not the program's; empty if there is none."""
    schema = getattr(functions().get(f"{operator}.default"), "_schema", None)
    if schema is None:
        return ""
    for node in artifact.graph["nodes"]:
        if _is(node, operator):
            given = dict(zip((a.name for a in schema.arguments), node["args"], strict=False)) | node["kwargs"]
            given = {a.name: a.default_value for a in schema.arguments if a.has_default_value()} | given
            for name, right in program.program.literals.items():
                if given.get(name) != right:
                    shown = given.get(name) if isinstance(given.get(name), int | float | None) else "something else"
                    return f"The fused call has {name}={shown}; the program {program.program.name} has {right}."
    return ""


def with_literals(artifact: Artifact, operator: str, program: Traced) -> Artifact:
    """Return the graph with the program's numbers and flags in each fused call, whatever the pass handed on."""
    schema = getattr(functions().get(f"{operator}.default"), "_schema", None)
    if schema is None or not program.program.literals:
        return artifact
    places = [argument.name for argument in schema.arguments]
    return _called(artifact, places, lambda given: {**given, **program.program.literals}, operator)


def erased_write(artifact: Artifact, program: Traced) -> str:
    """Return a sentence about a call that writes in the program and is gone in the result; empty if all are there."""
    before, after = (
        Counter(call.packet.rpartition(".")[2] for call in calls.values())
        for calls in (read_calls(program.module), artifact.called)
    )
    for name, count in before.items():
        if name.endswith("_") and not name.endswith("__") and after[name] < count:
            return f"The call of {name} is gone; it writes to what others read, so it stays even if nobody reads it."
    return ""


@dataclass(frozen=True)
class Swap:
    """A graph in which two arguments of every fused call have changed places, and the names of the two."""

    artifact: Artifact
    first: str
    second: str


def swaps(artifact: Artifact, operator: str) -> Iterator[Swap]:
    """Yield the graph with each two tensors among the arguments of the calls of `operator` swapped."""
    schema = getattr(functions().get(f"{operator}.default"), "_schema", None)
    if schema is None or not artifact.count(operator):
        return
    places = [argument.name for argument in schema.arguments]
    names = [argument.name for argument in schema.arguments if "Tensor" in str(argument.type)]
    for first, second in combinations(names, 2):

        def turned(given: Given, first: str = first, second: str = second) -> Given:
            return {**given, first: given.get(second), second: given.get(first)}

        yield Swap(_called(artifact, places, turned, operator), first, second)


def _called(artifact: Artifact, places: Sequence[str], change: Callable[[Given], Given], operator: str) -> Artifact:
    """Return the graph with the arguments of each fused call, by their names, as `change` makes them."""
    nodes = [
        {**node, "args": [], "kwargs": change(dict(zip(places, node["args"], strict=False)) | node["kwargs"])}
        if _is(node, operator)
        else node
        for node in artifact.graph["nodes"]
    ]
    graph: GraphData = {**artifact.graph, "nodes": nodes}
    return replace(artifact, graph=graph)


def _is(node: Any, operator: str) -> bool:
    return node["op"] == "call_function" and node["target"].removesuffix(".default") == operator
