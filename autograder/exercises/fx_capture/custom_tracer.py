"""Exercise 04.2: keep chosen modules as single nodes while tracing the rest."""

from collections.abc import Callable, Mapping
from typing import Any

from torch import fx, nn

from autograder.host.draw import Draw
from autograder.host.exercise import Check, Exercise, Kind
from autograder.host.kinds.analysis import Asked, Belief, sees


def rows(root: nn.Module, leaves: list[str]) -> list[list[Any]]:
    """Return the nodes of the graph in which modules of the classes `leaves` are one node each.

    Each node is a list of its name, op, target, and the names of the nodes it reads.
    """
    return _traced(root, lambda part: type(part).__name__ in leaves)


def _traced(root: nn.Module, is_leaf: Callable[[nn.Module], bool], *, asks_super: bool = True) -> list[list[Any]]:
    class Keeping(fx.Tracer):
        def is_leaf_module(self, m: nn.Module, module_qualified_name: str) -> bool:
            return (asks_super and super().is_leaf_module(m, module_qualified_name)) or is_leaf(m)

    graph = Keeping().trace(root)
    return [[n.name, n.op, str(n.target), [a.name for a in n.all_input_nodes]] for n in graph.nodes]


OPENED = Belief(
    lambda root, leaves: _traced(root, lambda part: type(part).__name__ in leaves, asks_super=False),
    "layers of torch.nn were opened as well. Ask the old rule, too: `or super().is_leaf_module(module, path)`.",
)
BELIEFS = (
    OPENED,
    Belief(
        lambda root, leaves: _traced(root, lambda part: type(part).__name__ in ("Block", *leaves)),
        "whole blocks became one node; only the classes that are named should.",
    ),
    Belief(
        lambda root, leaves: _traced(root, lambda part: part is not root),
        "every part became one node; only the classes that are named should.",
    ),
)


def models(*options: Mapping[str, Any]) -> Callable[[Draw], list[Asked]]:
    """Return a function that gives one question for each program, with random widths."""

    def made(draw: Draw) -> list[Asked]:
        full = [{"shared": False, "routed": False, "blocks": 1, "name": "attention", **o} for o in options]
        return [
            Asked(
                "model",
                {"leaves": ["Attention"], "width": draw.integer(2, 9), **each},
                f"a model of {each['blocks']} blocks",
            )
            for each in full
        ]

    return made


EXERCISE = Exercise(
    title="Keep parts whole",
    kind=Kind.ANALYSIS,
    entry_point="trace_keeping",
    points=8,
    wall_s=30,
    masked=("course_lib.capture",),
    hints=(
        "fx.Tracer asks its method is_leaf_module(module, path) about every module that is called.",
        "Write a subclass of fx.Tracer inside your function, so that it sees `leaves`; ask the old method, too.",
        "tracer = Keeping(); graph = tracer.trace(model); return fx.GraphModule(model, graph).",
    ),
    checks=(
        Check("one block", "leaf modules", 2.4, sees(rows, models({}), BELIEFS)),
        Check("three blocks", "several layers", 2.4, sees(rows, models({"blocks": 3}), BELIEFS, granted=(OPENED,))),
    ),
)
