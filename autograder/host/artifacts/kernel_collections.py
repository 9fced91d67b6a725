"""Refuse what lets a kernel keep a growing number of blocks, which Triton does not compile and its interpreter runs.

A variable of a loop has one type in Triton, so no tuple or list grows in a loop. In the interpreter it would hold a
whole row, or what another program computed, in places where no access is counted.
"""

import ast
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from autograder.host.artifacts import kernel_words as words
from autograder.host.source_text import ids_under

RANGES = ("range", "tl.range", "tl.static_range")
UNROLLED = "tl.static_range"
Kernels = Mapping[str, ast.FunctionDef]


@dataclass(frozen=True)
class Growth:
    """A node that may make something grow, and the sentence about it."""

    function: ast.FunctionDef
    node: ast.AST
    says: str


def growths(kernels: Kernels) -> Iterator[Growth]:
    """Return what is refused in kernels, by the name of each; the trees are read without recursion."""
    calls = {name: list(_calls(function, kernels)) for name, function in kernels.items()}
    for name, function in kernels.items():
        if name in _reached({each for each, _ in calls[name]}, calls):
            yield Growth(function, function, "it calls itself; Triton compiles no recursion. Write a loop.")
    repeated = _reached({each for found in calls.values() for each, inside in found if inside}, calls)
    returns = [(name, each) for name in kernels for each in ast.walk(kernels[name]) if isinstance(each, ast.Return)]
    several = {name for name, each in returns if isinstance(each.value, ast.Tuple)}
    for name, function in kernels.items():
        yield from _in_function(function, name in repeated, several)


def _reached(first: set[str], calls: Mapping[str, list[tuple[str, bool]]]) -> set[str]:
    found, new = set(first), list(first)
    while new:
        for name, _ in calls[new.pop()]:
            if name not in found:
                found.add(name)
                new.append(name)
    return found


def _calls(function: ast.FunctionDef, kernels: Kernels) -> Iterator[tuple[str, bool]]:
    """Return the kernels whose names occur, as a name is enough to call one, and whether in a loop."""
    inside = _nodes_of_loops(function)
    for node in ast.walk(function):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load) and node.id in kernels:
            yield node.id, id(node) in inside


def _nodes_of_loops(function: ast.FunctionDef) -> set[int]:
    """Return the ids of the nodes in loops that Triton does not unroll."""
    loops = [
        node
        for node in ast.walk(function)
        if isinstance(node, ast.While) or (isinstance(node, ast.For) and words.called(node.iter) != UNROLLED)
    ]
    return ids_under(loops)


def _in_function(function: ast.FunctionDef, repeated: bool, several: set[str]) -> Iterator[Growth]:
    inside = _nodes_of_loops(function)
    parents = {id(child): node for node in ast.walk(function) for child in ast.iter_child_nodes(node)}
    for node in ast.walk(function):
        parent = parents.get(id(node))
        parent = parents.get(id(parent)) if isinstance(parent, ast.keyword) else parent
        of_language = isinstance(parent, ast.Call) and isinstance(parent.func, ast.Attribute)
        unpacked = isinstance(parent, ast.Assign) and all(isinstance(t, ast.Tuple) for t in parent.targets)
        if isinstance(node, ast.For) and words.called(node.iter) not in RANGES:
            yield Growth(function, node.iter, f"a loop goes over {', '.join(RANGES)}, and nothing else.")
        elif isinstance(node, ast.List) and isinstance(node.ctx, ast.Load) and not of_language:
            yield Growth(function, node, "a list outside of a call. A kernel keeps blocks in names.")
        elif not (repeated or id(node) in inside):
            continue
        elif isinstance(node, ast.Tuple) and isinstance(node.ctx, ast.Load):
            if not (of_language or unpacked or isinstance(parent, ast.Subscript | ast.Return)):
                yield Growth(function, node, "a tuple that is kept in a loop. Give each block a name of its own.")
        elif (words.called(node) in several or words.called(node) == "tl.split") and not unpacked:
            yield Growth(function, node, "several results under one name in a loop. Write a name for each.")
