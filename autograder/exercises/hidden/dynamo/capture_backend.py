"""Hidden checks and controls of exercise 07.5."""

from __future__ import annotations

from autograder.exercises.dynamo import capture_backend as visible
from autograder.host.exercise import Check, Control, HiddenPart

collects = visible.collects

REFERENCE = """
def collect(function, calls):
    graphs = []

    def keep(graph_module, example_inputs):
        graphs.append((graph_module, [tuple(i.shape) for i in example_inputs]))
        return graph_module.forward

    torch._dynamo.reset()
    compiled = torch.compile(function, backend=keep)
    return [compiled(*args, **kwargs) for args, kwargs in calls], graphs
"""
AT_EACH_CALL = """
def collect(function, calls):
    graphs = []

    def keep(graph_module, example_inputs):
        def run(*inputs):
            graphs.append((graph_module, [tuple(i.shape) for i in inputs]))
            return graph_module(*inputs)

        return run

    torch._dynamo.reset()
    compiled = torch.compile(function, backend=keep)
    return [compiled(*args, **kwargs) for args, kwargs in calls], graphs
"""
TRACED = """
def collect(function, calls):
    graph = torch.fx.symbolic_trace(function)
    shapes = [tuple(a.shape) for a in (*calls[0][0], *calls[0][1].values())]
    return [function(*args, **kwargs) for args, kwargs in calls], [(graph, shapes)]
"""

HIDDEN = HiddenPart(
    checks=(
        Check("inputs by name", "inputs by name", 1, collects(visible.BY_NAME)),
        Check(
            "one program after the other, and again",
            "no leftovers",
            1.4,
            collects(visible.WHOLE, visible.BROKEN, visible.WHOLE),
        ),
        Check("several calls, some compiled anew", "several calls", 1.2, collects(visible.RECOMPILED, shapes=True)),
    ),
    equivalent={
        "line 9: torch._dynamo.reset() -> pass": "Dynamo asks a backend that is new, whatever another one made"
    },
    controls=(
        Control("reference", REFERENCE, 9),
        Control("kept when the graph runs", AT_EACH_CALL, 7.8),
        Control(
            "no graphs", "def collect(function, calls):\n    return [function(*a, **k) for a, k in calls], []\n", 0
        ),
        Control("traced, not captured", TRACED, 3.2),
        Control(
            "graphs of all time",
            REFERENCE.replace("def collect", "graphs = []\n\ndef collect").replace("    graphs = []\n", ""),
            9,
            below=True,
        ),
    ),
)
