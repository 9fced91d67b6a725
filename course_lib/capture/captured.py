"""Hold the result of a capture: a program as a graph, and the part of PyTorch that captured it."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from torch import fx, nn

from course_lib.capture.source_lines import SourceLine
from course_lib.errors import CaptureError


@dataclass(frozen=True, kw_only=True, repr=False)
class Captured:
    """Hold a program as one graph or as several.

    >>> import torch
    >>> captured = Captured(mode="fx", captured_by="a person", code="", run=torch.relu, ir="relu")
    >>> captured(torch.tensor(-1.0))
    tensor(0.)
    >>> captured
    Captured in mode 'fx' by a person: no torch.fx graph; read .code or .ir
    """

    mode: str
    captured_by: str  # the part of PyTorch that did it, such as "torch.jit.trace"
    code: str  # the graph as Python, or as the code that TorchScript prints
    ir: str  # the graph as text, node by node
    run: Callable[..., Any]  # takes the program's inputs and runs the captured graph
    graphs: Mapping[str, fx.GraphModule] = field(default_factory=dict)  # name -> graph; the main one first
    script: Any = None  # the `ScriptModule` or `ScriptFunction` of "trace" and "script"
    exported: Any = None  # the `torch.export.ExportedProgram` of "export"
    module: nn.Module | None = None  # holds the parameters and flags that `run` uses
    guards: tuple[str, ...] = ()  # conditions on the inputs under which the graph is valid, if checked
    breaks: tuple[str, ...] = ()  # the reason of each graph break
    warnings: tuple[str, ...] = ()  # warnings of PyTorch during the capture, not printed
    lines: Mapping[str, SourceLine] = field(default_factory=dict)  # node -> line it came from, where known

    def __call__(self, *inputs: object, **keyword_inputs: object) -> Any:
        """Run the captured graph."""
        return self.run(*inputs, **keyword_inputs)

    def __repr__(self) -> str:
        nodes = sum(len(graph.graph.nodes) for graph in self.graphs.values())
        graphs = f"{len(self.graphs)} torch.fx graph{'s' * (len(self.graphs) != 1)} of {nodes} nodes"
        held = graphs if self.graphs else "no torch.fx graph; read .code or .ir"
        breaks = f", {len(self.breaks)} graph break{'s' * (len(self.breaks) != 1)}" if self.breaks else ""
        return f"Captured in mode {self.mode!r} by {self.captured_by}: {held}{breaks}"

    @property
    def graph_module(self) -> fx.GraphModule:
        """Return the one torch.fx graph; of mode "aot" the joint graph.

        Raises `CaptureError` if there is none, or if graph breaks produced several.
        """
        if self.breaks or not self.graphs:
            number = f"{len(self.graphs)} graph{'s' * (len(self.graphs) != 1)} ({', '.join(self.graphs)})"
            found = f"{number} with Python around: {self.breaks[0]}" if self.graphs else "no torch.fx graph"
            raise CaptureError(
                f"Mode {self.mode!r} gave {found}, so there is no single graph_module. "
                "Read .code, .ir, .graphs or .script, or capture with another mode."
            )
        return next(iter(self.graphs.values()))

    @property
    def graph(self) -> Any:
        """Return the graph itself: a `torch.fx.Graph`, or for "trace" and "script" a `torch.Graph`."""
        return self.script.graph if self.script is not None else self.graph_module.graph


class RereadingTracer(fx.Tracer):
    """Trace the code of a graph module that is unpickled; parameters and buffers stay attributes."""

    proxy_buffer_attributes = True  # otherwise values computed from buffers alone would become constants


def picklable(gm: fx.GraphModule) -> fx.GraphModule:
    """Make `gm` and its copies picklable, and return `gm`.

    To unpickle a graph module, torch.fx traces its code with the class of the tracer that captured it, called without
    arguments. Some tracers need arguments, and the tracer of `make_fx` computes on parameters instead of recording.
    Stack traces survive; other metadata does not, so run `propagate_shapes` again. Annotations that are strings are
    lost too, as in files with `from __future__ import annotations`.
    """
    quoted = [node for node in gm.graph.nodes if isinstance(node.type, str)]
    for node in quoted:
        node.type = None  # torch.fx would look for an object of this name
    if quoted:
        gm.recompile()
    gm._tracer_cls = RereadingTracer
    gm.graph._tracer_cls = RereadingTracer  # copies take the class from here
    return gm
