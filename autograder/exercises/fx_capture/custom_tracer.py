"""Exercise 04.2: keep chosen modules as single nodes while tracing the rest."""

from collections.abc import Callable, Mapping
from typing import Any

from autograder.exercises.questions import kept
from autograder.host.draw import Draw
from autograder.host.exercise import Check, Exercise, Kind
from autograder.host.kinds.analysis import Asked, sees

known = kept(__name__, "known")
OPENED = "layers of torch.nn were opened as well. Ask the old rule, too: `or super().is_leaf_module(module, path)`."


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


SEVERAL = models({"blocks": 3}, {"blocks": 1, "name": "heads"})

EXERCISE = Exercise(
    title="Keep parts whole",
    kind=Kind.ANALYSIS,
    entry_point="trace_keeping",
    points=8,
    wall_s=30,
    masked=("course_lib.capture", "torch.ao.quantization.fx", "torch.ao.ns"),
    hints=(
        "fx.Tracer asks its method is_leaf_module(module, path) about every module that is called.",
        "Write a subclass of fx.Tracer inside your function, so that it sees `leaves`; ask the old method, too.",
        "tracer = Keeping(); graph = tracer.trace(model); return fx.GraphModule(model, graph).",
    ),
    checks=(
        Check("one block", "leaf modules", 2, sees(known, models({}))),
        Check("three blocks, a part renamed", "several layers", 3, sees(known, SEVERAL, granted=(OPENED,))),
    ),
)
