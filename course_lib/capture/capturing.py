"""`capture`: one function for all the ways to turn a program into a graph."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from torch import fx, nn

from course_lib.capture.source import SourceLine
from course_lib.capture.symbolic import LeafModule, trace
from course_lib.errors import CaptureError

MODES = ("fx",)


@dataclass(frozen=True)
class Captured:
    """A program as a graph."""

    graph_module: fx.GraphModule
    mode: str
    code: str  # the Python code that torch.fx generates for the graph
    lines: Mapping[str, SourceLine] = field(
        default_factory=dict, repr=False
    )  # node name -> line it came from, where known

    @property
    def graph(self) -> fx.Graph:
        """The graph itself."""
        return self.graph_module.graph


def capture(
    model: nn.Module | Callable[..., object],
    example_inputs: Sequence[object] = (),
    *,
    mode: str = "fx",
    leaf_modules: Sequence[LeafModule] = (),
    concrete_args: Mapping[str, object] | None = None,
) -> Captured:
    """Turn a module or function into a graph.

        >>> capture(lambda x: torch.relu(x) + 1).graph_module(torch.zeros(2))
        tensor([1., 1.])

    Mode "fx" runs the program once on proxies, so it needs no `example_inputs`; other modes do. `leaf_modules`
    names classes, or paths such as "layers.0", that stay one node each. `concrete_args` fixes arguments by name:
    `{"mask": None}` captures the program without a mask, and the graph has no such input. The graph shares
    parameters with `model`.

    Raises `CaptureError`, which says what failed, in which line of the program, and what to try.
    """
    if mode not in MODES:
        raise CaptureError(f"capture got mode={mode!r}; it knows {', '.join(map(repr, MODES))}.")
    if not callable(model):
        raise CaptureError(f"capture got a {type(model).__name__}; it expects a module or a function.")
    graph_module, lines = trace(model, leaf_modules, concrete_args)
    return Captured(graph_module, mode, graph_module.code, lines)
