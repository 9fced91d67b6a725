"""Programs for passes: the input of a student's pass, and the reference for its result."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import Any

import torch
from torch import fx, nn
from torch.func import functional_call
from torch.nn import functional

from autograder.host.draw import Draw
from autograder.protocol import GraphData
from course_lib.graph import to_data


class _WithBuffers(fx.Tracer):
    proxy_buffer_attributes = True


@dataclass(frozen=True)
class TensorSpec:
    """An input's shape, dtype, and the standard deviation of its numbers."""

    shape: tuple[int, ...]
    dtype: torch.dtype = torch.float32
    scale: float = 1.0


@dataclass(frozen=True)
class Program:
    """A program that a pass transforms, and how often the result must call the fused operator.

    `build` makes the function or module; the host traces it with torch.fx. The pass may see
    `inputs`. Only the checks use the sizes in `others`, which detect a size that is constant in the graph.
    """

    name: str  # completes "in the program ..."
    build: Callable[[], Callable[..., Any]]
    inputs: tuple[TensorSpec, ...]
    fused: int
    others: tuple[tuple[TensorSpec, ...], ...] = ()
    reason: str = ""  # why more calls would be wrong, for the student
    at_most: int | None = None  # the largest number of calls that is accepted, if more than `fused`
    missed: str = ""  # what to look for if there are fewer calls, for the student
    plain: "Program | None" = None  # if set, fewer calls are accepted from a pass that fuses in this program
    literals: Mapping[str, Any] = field(default_factory=dict)  # the fused call's numbers and flags, by parameter
    folds: bool = False  # whether a right pass computes new weights from the old ones
    training: bool = False  # traced in training mode, and run as its modules and arguments say
    buffers: bool = False  # buffers become `get_attr` nodes; otherwise tracing uses their values as constants

    def trace(self) -> fx.GraphModule:
        """Return the program's graph."""
        made = self.build()
        if isinstance(made, fx.GraphModule):  # edited by hand; tracing it again would undo the edit
            return made.train(self.training)
        root = made.train(self.training) if isinstance(made, nn.Module) else made
        tracer = _WithBuffers() if self.buffers else fx.Tracer()
        graph = tracer.trace(root)
        return fx.GraphModule(tracer.root, graph)


@dataclass(frozen=True)
class Step:
    """One call of a continuation: a function of the value and of more numbers."""

    function: Callable[..., torch.Tensor]
    more: tuple[float, ...] = ()


@dataclass(frozen=True)
class Traced:
    """A traced program with parameters of this grading, as data to send and as a module to compare with."""

    program: Program
    module: fx.GraphModule
    graph: GraphData
    tensors: dict[str, torch.Tensor]

    def redraw(self, draw: Draw) -> None:
        """Give every parameter that is not frozen a fresh value, here and in `tensors`, which shares their memory."""
        with torch.no_grad():
            for parameter in filter(lambda p: p.requires_grad, self.module.parameters()):
                parameter.copy_(draw.normal(*parameter.shape, dtype=parameter.dtype))

    def moderate(self) -> None:
        """Make matrices so small that no softmax saturates, which amplifies rounding; call it after `redraw`."""
        with torch.no_grad():
            for matrix in (parameter for parameter in self.module.parameters() if parameter.dim() > 1):
                matrix.mul_(matrix.shape[-1] ** -0.5)

    def mutated(self, inputs: Sequence[torch.Tensor]) -> tuple[int, ...]:
        """Return the indices of the inputs that the program itself writes to."""
        copies = [i.clone() for i in inputs]
        self._run(copies, {})
        return tuple(
            i for i, (now, before) in enumerate(zip(copies, inputs, strict=True)) if not torch.equal(now, before)
        )

    def reference(self, *inputs: torch.Tensor, parameters: Mapping[str, torch.Tensor] | None = None) -> Any:
        """Run the program itself on private copies of `inputs`, in fp64 if an input is in fp64.

        Some of its parameters may be given, as leaves to differentiate by.
        """
        return self._run([t.clone() if not t.requires_grad else t * 1 for t in inputs], parameters or {})

    def leaves(self, names: Sequence[str], *, in_fp64: bool) -> dict[str, torch.Tensor]:
        """Return copies of these parameters to differentiate by."""
        copies = {name: self.module.get_parameter(name).detach().clone() for name in names}
        return {name: (copy.double() if in_fp64 else copy).requires_grad_() for name, copy in copies.items()}

    def _run(self, inputs: Sequence[torch.Tensor], parameters: Mapping[str, torch.Tensor]) -> Any:
        """Call the program on `inputs` and `parameters`, which are not copied, and on a copy of its other tensors.

        The program may write to its buffers, so the originals must not be used. The copy is in fp64 if an input is.
        """
        in_fp64 = any_fp64(inputs)
        state: dict[str, torch.Tensor] = {
            name: held.detach().to(torch.float64 if in_fp64 and held.is_floating_point() else held.dtype, copy=True)
            for name, held in chain(self.module.named_parameters(), self.module.named_buffers())
        }
        return functional_call(self.module, {**state, **parameters}, tuple(inputs))


@dataclass(frozen=True)
class Continuation:
    """A few drawn steps behind each output of a program, so that no table of finished graphs answers for it.

    No exercise asks about these steps, and they keep the magnitude of numbers.
    """

    steps: tuple[Step, ...]

    @classmethod
    def drawn(cls, draw: Draw) -> "Continuation":
        """Return two to four steps; some have a drawn number."""
        factor, slope = draw.integer(9, 31) / 8, draw.integer(1, 7) / 8
        steps: tuple[Step, ...] = (
            Step(torch.neg),
            Step(torch.abs),
            Step(torch.mul, (factor,)),
            Step(functional.leaky_relu, (slope,)),
        )
        return cls(tuple(draw.sample(steps, draw.integer(2, 4))))

    def behind(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """Return the function with the steps behind its outputs."""

        def continued(*inputs: torch.Tensor) -> Any:
            outputs = function(*inputs)
            return tuple(map(self._of, outputs)) if isinstance(outputs, tuple | list) else self._of(outputs)

        return continued

    def _of(self, value: torch.Tensor) -> torch.Tensor:
        for step in self.steps:
            value = step.function(value, *step.more)
        return value

    def behind_graph(self, module: fx.GraphModule) -> fx.GraphModule:
        """Return the same module with a graph that has the steps behind its outputs."""
        if not self.steps:
            return module
        graph = fx.Graph()
        ends: dict[fx.Node, fx.Node] = {}

        def ended(node: fx.Node) -> fx.Node:
            if node not in ends:
                ends[node] = node
                for step in self.steps:
                    ends[node] = graph.call_function(step.function, (ends[node], *step.more))
            return ends[node]

        graph.output(fx.map_arg(graph.graph_copy(module.graph, {}), ended))
        return fx.GraphModule(module, graph)


def traced(program: Program, draw: Draw, continuation: Continuation | None = None) -> Traced:
    """Trace a program and give its parameters fresh values; `continuation` follows its outputs."""
    module = program.trace()
    if continuation is not None:
        module = continuation.behind_graph(module)
    graph, tensors = to_data(module)
    made = Traced(program, module, graph, dict(tensors))
    made.redraw(draw)
    return made


def any_fp64(inputs: Sequence[torch.Tensor]) -> bool:
    """Return whether the program runs in fp64 on these inputs."""
    return any(i.dtype is torch.float64 for i in inputs)


def draw_inputs(specs: Sequence[TensorSpec], draw: Draw) -> tuple[torch.Tensor, ...]:
    """Return fresh random inputs of the given shapes and dtypes."""
    return tuple(draw.normal(*spec.shape, dtype=spec.dtype, scale=spec.scale) for spec in specs)
