"""Calls of a graph whose results nothing needs."""

from __future__ import annotations

from torch import fx

from course_lib.fusion.effects import mutates


def dead_calls(graph: fx.Graph) -> tuple[str, ...]:
    """Names of the calls from which no chain of readers leads to the output or to a call that writes in place.

    >>> dead_calls(fx.symbolic_trace(lambda x: (x + 1, x * 2)[0]).graph)
    ('mul',)
    """
    alive: set[fx.Node] = set()
    for node in reversed(graph.nodes):
        if node.op == "output" or mutates(node) or any(user in alive for user in node.users):
            alive.add(node)
    return tuple(node.name for node in graph.nodes if node.op.startswith("call_") and node not in alive)
