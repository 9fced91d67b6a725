"""Load data that the host has checked or made; this process runs no student code.

A student may have chosen the size of a graph or a file, and Inductor or TensorBoard needs time and memory for it. So
this process does the work, and not the host.
"""

import importlib
import math
import tempfile
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import torch

from autograder.protocol import GraphData, Handlers, Json, Result, Tensors
from autograder.protocol.requests.answers import InputForm
from autograder.protocol.requests.loads import (
    CallGraph,
    Cost,
    CountedStep,
    CountGraph,
    CountStep,
    EventsRead,
    GraphCalled,
    LoadEvents,
    LoadGraph,
    LoadLowering,
    LoweredCost,
    LowerGraph,
    LowerSteps,
    ObserveWrites,
    ReadEvents,
    StepCost,
    Writes,
)
from autograder.worker.observed_writes import observed_writes
from autograder.worker.own_operators import own_operators
from autograder.worker.rounds import Rounds
from autograder.worker.step_of_graph import TrainingStep, replayed
from autograder.worker.tensors import call_on_tensors, filled, to_raw, to_torch

OPERATORS = "torch.ops.course_lib."
EVERYTHING = {"scalars": 0, "histograms": 0, "graph": 0}


def register_for(graph: GraphData) -> None:
    """Register the course's operators only if the graph calls one: it takes longer than running a small graph."""
    if any(node["target"].startswith(OPERATORS) for node in graph["nodes"]):
        importlib.import_module("course_lib.kernels")


def rebuilt(
    graph: GraphData, tensors: Mapping[str, torch.Tensor], own: Mapping[str, Callable[..., Any]] | None = None
) -> torch.fx.GraphModule:
    """Return the module of a graph that the host has checked."""
    register_for(graph)
    from course_lib.graph import from_data

    return from_data(graph, tensors, own=own)


def load_graph(request: LoadGraph, tensors: Tensors) -> Handlers:
    """Rebuild the graph; requests run it on tensors, alone or in rounds."""
    sent = list(map(to_torch, tensors))
    own = [tensor.clone() for tensor in sent]
    operators = own_operators(request.operators, request.kernels)
    graph_module = rebuilt(request.graph, dict(zip(request.paths, own, strict=True)), operators)
    if request.training is not None:
        graph_module.train(request.training)

    def restore() -> None:
        for tensor, value in zip(own, sent, strict=True):
            tensor.copy_(value)

    def call(request: CallGraph, tensors: Tensors) -> Result[GraphCalled]:
        if request.restored:
            restore()
        costs: list[Cost] = []
        program = _counted_run(graph_module, costs) if request.count else graph_module
        with replayed(request.draws) as mode:
            parameters = [graph_module.get_parameter(path) for path in request.by]
            result = call_on_tensors(program, request.call, tensors, parameters)
        by_position = () if mode is None else tuple(mode.drawn_by_position)
        return Result(GraphCalled(result.body, costs[0] if costs else None, by_position), result.tensors)

    def count(request: CountGraph, _: Tensors) -> Result[Cost]:
        restore()
        held = (*graph_module.parameters(), *graph_module.buffers())
        device = held[0].device if held else torch.device("cpu")  # rounds move a graph to their device
        return Result(_cost(graph_module, _random(request.inputs, device)))

    def count_step(request: CountStep, tensors: Tensors) -> Result[CountedStep]:
        return _counted_step(graph_module, request, list(map(to_torch, tensors)), restore)

    def observe(request: ObserveWrites, tensors: Tensors) -> Result[Writes]:
        restore()
        args, _ = filled(request.call.arguments, [to_torch(raw) for raw in tensors])
        return Result(Writes(observed_writes(graph_module, args)))

    rounds = Rounds(TrainingStep(graph_module, request.by) if request.by else graph_module).handlers()
    return {CallGraph: call, CountGraph: count, CountStep: count_step, ObserveWrites: observe, **rounds}


def _counted_run(program: Callable[..., object], costs: list[Cost]) -> Callable[..., Any]:
    """Return the program, which adds the cost of each run to `costs`: a graph may hold other tensors in the next."""

    def counted(*inputs: torch.Tensor) -> Any:
        results: list[Any] = []
        costs.append(_cost(lambda *given: results.append(program(*given)), inputs))
        return results[0]

    return counted


def _cost(program: Callable[..., object], inputs: Sequence[torch.Tensor]) -> Cost:
    from course_lib.graph import cost

    found = cost(program, inputs)
    moved = found.bytes_read, found.bytes_written
    return Cost(found.launches, *moved, found.flops, found.peak_bytes, found.longest_side)


def _random(forms: Sequence[InputForm], device: torch.device | str = "cpu") -> list[torch.Tensor]:
    """Return inputs that no graph can know, or tell from those for which its values are compared."""
    generator = torch.Generator(device)
    generator.seed()
    return [
        torch.empty(i.shape, dtype=getattr(torch, i.dtype), device=device).normal_(generator=generator) for i in forms
    ]


def _counted_step(
    graph_module: torch.fx.GraphModule, request: CountStep, inputs: Sequence[torch.Tensor], restore: Callable[[], None]
) -> Result[CountedStep]:
    """Count three runs, each with the tensors as they were sent: what one run writes must not change the next.

    All have the same inputs and masks, so the forward passes compute the same as the one whose results are returned.
    """
    from course_lib.graph import cost, saved_for_backward

    step = TrainingStep(graph_module, request.by)
    computed: list[torch.Tensor | None] = []

    def noted(*given: torch.Tensor) -> None:
        computed.extend(step(*given))

    def counted(count: Callable[..., Any], program: Callable[..., object]) -> Any:
        restore()
        with torch.enable_grad(), replayed(request.draws):
            return count(program, [each.clone() for each in inputs])

    whole, forward = counted(cost, noted), counted(cost, graph_module)
    saved = counted(saved_for_backward, graph_module).total_bytes
    loss, *gradients = computed
    found = StepCost(forward.launches, whole.launches, whole.bytes_moved, saved)
    raws = [to_raw(each.detach(), "a result of the step") for each in (loss, *gradients) if each is not None]
    return Result(CountedStep(found, tuple(each is not None for each in gradients)), raws)


def load_lowering(request: LoadLowering, tensors: Tensors) -> Handlers:
    """Keep the graph of the request, if it has one; later requests lower this graph or a program of the host."""
    graph = None
    if request.graph is not None:
        own = {path: to_torch(raw).clone() for path, raw in zip(request.paths, tensors, strict=True)}
        graph = rebuilt(request.graph, own).eval()

    def lower_graph(_: LowerGraph, tensors: Tensors) -> Result[LoweredCost]:
        assert graph is not None, "a graph was loaded"
        return _counted(graph, [to_torch(raw) for raw in tensors], {})

    def lower_steps(request: LowerSteps, _: Tensors) -> Result[LoweredCost]:
        from course_lib.models import program_from_steps

        program, inputs = program_from_steps(request.steps)
        return _counted(program, inputs, request.config)

    return {LowerGraph: lower_graph, LowerSteps: lower_steps}


def _counted(
    program: Callable[..., Any], inputs: Sequence[torch.Tensor], config: Mapping[str, Json]
) -> Result[LoweredCost]:
    """Count generated kernels, calls of other kernels, bytes, loops, and the graphs that Dynamo made."""
    from course_lib.graph import scheduled

    found = scheduled(program, inputs, config=config)
    cost = found.cost
    counted = LoweredCost(
        generated_kernels=cost.generated_kernels,
        library_calls=cost.library_calls,
        bytes_moved=cost.bytes_moved,
        graphs=cost.graphs,
        fused_loops=found.kernels,
    )
    return Result(counted)


def load_events(_: LoadEvents, __: Tensors) -> Handlers:
    """Load TensorBoard's reader; requests bring the bytes of event files."""
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    def read(_: ReadEvents, tensors: Tensors) -> Result[EventsRead]:
        with tempfile.TemporaryDirectory() as folder:
            for number, file in enumerate(tensors):
                (Path(folder) / f"events.out.tfevents.{number}").write_bytes(bytes(file.data))
            seen = EventAccumulator(folder, size_guidance=EVERYTHING, purge_orphaned_data=False)
            seen.Reload()
            tags = seen.Tags()
            scalars = {tag: tuple((e.step, _number(e.value)) for e in seen.Scalars(tag)) for tag in tags["scalars"]}
            operators = Counter(node.op for node in seen.Graph().node) if tags["graph"] else {}
            histograms = {tag: len(seen.Histograms(tag)) for tag in tags["histograms"]}
        return Result(EventsRead(scalars, dict(operators), histograms))

    return {ReadEvents: read}


def _number(value: float) -> float | None:
    return float(value) if math.isfinite(value) else None
