"""Answers that are schedules: the host's model is built, scheduled and traced in the worker, and the graph is graded.

The host counts the calls of the graph and finds each of its tensors by name in the state dict. It writes other values
into them and compares the graph with the model. So a copied, renamed or forgotten weight is detected.
"""

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import torch

from autograder.host import shared_inputs
from autograder.host.artifacts import Artifact
from autograder.host.artifacts.operator_calls import read_calls
from autograder.host.draw import Draw
from autograder.host.exercise import CheckFailedError
from autograder.host.kinds import schedule_models
from autograder.host.kinds.graph import GraphAnswer, read_graph, times
from autograder.host.kinds.graph_values import require_equal
from autograder.host.kinds.sent_tensors import Sent, other_values
from autograder.host.kinds.wiring import Wiring, layers_as_functions
from autograder.host.point_shares import share_among, share_of_places
from autograder.host.speed import Speed
from autograder.host.traced import Program, TensorSpec, Traced, draw_inputs
from autograder.protocol.requests.answers import Schedule

BATCH, SEQUENCE, WIDTH = 2, 5, 8
MAX_NODES = 600
MORE_LAYERS = 3  # largest number of layers that a model has more than the timed one, to see that both are scheduled
LINEAR = "torch.nn.functional.linear"
FORMS = frozenset(  # what gives sizes and views, as a method or as a function of torch
    (
        *("builtins.getattr", "operator.floordiv", "operator.getitem", "dim", "size", "chunk", "contiguous", "expand"),
        *("flatten", "movedim", "permute", "reshape", "split", "squeeze", "swapaxes", "t", "transpose", "unbind"),
        *("unflatten", "unsqueeze", "view"),
    )
)
SOME = "Only some of the places were changed: go through all layers, and take all matches."
MORE = "More places were changed than fit: look at what else has that name, or that form."


@dataclass(frozen=True)
class Scheduled:
    """A model to schedule, and the calls that the result must have.

    `counts` names targets as in a graph's data, such as "torch.nn.functional.linear" or, for a module,
    "torch.nn.Linear"; every overload of an operator counts. A range allows several numbers. Where values are right and
    there are fewer calls than a number asks for, that part of the points is earned; with `steps`, for each target anew.
    """

    name: str  # completes "In the model ..."
    arguments: Mapping[str, Any]  # of `schedule_models.Encoder`
    counts: Mapping[str, int | range]
    reason: str = ""  # why this is right, for the student
    part: str = ""  # path of the part whose graph is checked; empty for the model
    question: tuple[Any, ...] = ()  # further arguments of the answer, after the schedule
    times: int = 1  # how often the answer is called
    training: bool = False
    switched: bool = False  # the answer gets the model in the mode opposite to `training`; it is switched afterwards
    leaves: tuple[str, ...] = ()
    operator: str = ""  # if the answer only finds matches: the operator that replaces them
    literals: Mapping[str, Sequence[Any]] = field(default_factory=dict)  # operator to numbers that each call must have
    says: Mapping[str, Mapping[int, str]] = field(default_factory=dict)  # target to wrong count to its explanation
    explain: Callable[[Sequence[str]], str] | None = None  # explains a wrong count by the names of all calls
    launches: int | None = None  # operators that one run may launch
    wiring: Mapping[str, Wiring] = field(default_factory=dict)  # operator to where its arguments come from
    layer: str = ""  # the last name of every linear layer that becomes a function; empty if the name does not matter
    steps: bool = False  # whether each target in `counts` is a step by itself, and earns an equal part of the points
    uncounted: Mapping[str, int] = field(default_factory=dict)  # calls of a target; each further one adds a launch


@dataclass
class ScheduleAnswer(GraphAnswer):
    """Apply the student's schedule in one worker, and run the resulting graph in another."""

    def scheduled(self, model: Scheduled, state: Mapping[str, torch.Tensor]) -> Artifact:
        """Return the graph of the scheduled model, checked and rebuilt by the host.

        The model is sent twice, first with other weights, so that a schedule that keeps the first weights is wrong.
        """
        request = Schedule(
            text=inspect.getsource(schedule_models),
            arguments=dict(model.arguments),
            state=tuple(state),
            training=model.training,
            scheduled_in_training=model.training != model.switched,
            question=model.question,
            times=model.times,
            part=model.part,
            leaves=model.leaves,
            operator=model.operator,
        )
        self.student.call_with(request, [shared_inputs.to_raw(other_values(t)) for t in state.values()])
        reply = self.student.call_with(request, [shared_inputs.to_raw(t) for t in state.values()])
        return read_graph(reply, f"In the model {model.name}: ", max_nodes=MAX_NODES)


Run = Callable[[ScheduleAnswer, Draw], None]


def schedules(*models: Scheduled, gradients: bool = False, together: bool = False) -> Run:
    """Return a check that each scheduled model has the right calls and computes the same as before.

    The models share its points equally; with `together`, for what must stay unchanged, all of them have to be right.
    """

    def run(answer: ScheduleAnswer, draw: Draw) -> None:
        share_among(
            models,
            lambda model: require_scheduled(answer, model, draw, gradients=gradients),
            noun="models",
            where=lambda model: f"In the model {model.name}: ",
            together=together,
        )

    return run


def scheduled_speed(
    model: Scheduled,
    ideal_ratio: float,
    *,
    batch: int,
    sequence: int,
    shown_only: str = "",
    on_gpu: Speed | None = None,
) -> Speed:
    """Return the line that times the scheduled model against the model itself, with inputs of this size."""

    def longer(draw: Draw) -> Speed:
        layers = model.arguments.get("layers", 1) + draw.integer(1, MORE_LAYERS)
        return of(replace(model, arguments={**model.arguments, "layers": layers}))

    def of(each: Scheduled) -> Speed:
        width = each.arguments.get("width", WIDTH)
        inputs = (TensorSpec((batch, sequence, width)), TensorSpec((batch, 1, 1, sequence)))

        def graph_of(answer: ScheduleAnswer, source: Traced) -> Artifact:
            source.moderate()
            return answer.scheduled(each, source.module.state_dict())

        program = Program(each.name, lambda: schedule_models.Encoder(**each.arguments), inputs, 0)
        return Speed(program, ideal_ratio, graph_of=graph_of)

    return replace(of(model), longer=longer, shown_only=shown_only, on_gpu=on_gpu)


def require_scheduled(answer: ScheduleAnswer, model: Scheduled, draw: Draw, *, gradients: bool = False) -> Artifact:
    """Apply the schedule to one model with fresh weights; raises `CheckFailedError` unless the result is right."""
    encoder = schedule_models.Encoder(**model.arguments)
    source = _source(model, encoder)
    _redraw(encoder, draw)
    artifact = answer.scheduled(model, encoder.state_dict())
    _require_names(artifact, source, model)
    _require_no_more_work(artifact, source, model)
    told = f"In the model {model.name}: "
    Sent.of_module(encoder.get_submodule(model.part)).require_kept(artifact, told)
    miscounted, otherwise_called = _miscounted(artifact, model), _otherwise_called(artifact, model)
    miswired = _miswired(artifact, model)
    _redraw(encoder, draw)  # so that weights that were copied into the graph give wrong results
    fresh = artifact.with_tensors(source.tensors)
    try:
        _require_values(answer, artifact, source, draw, gradients=gradients)
    except CheckFailedError as error:
        computed = (wiring.computed(artifact, target) for target, wiring in model.wiring.items())
        suspected = next((f"In the model {model.name}: {clause}." for clause in computed if clause), "")
        explained = otherwise_called or miswired or miscounted or suspected
        raise CheckFailedError(f"{explained} {error}".strip(), changes=True) from None
    if miscounted and model.layer:
        raise CheckFailedError(f"{miscounted} {miswired}".rstrip(), share=miscounted.share)
    if miswired:
        raise CheckFailedError(miswired, changes=not model.layer)
    if miscounted:
        raise miscounted
    if otherwise_called:
        raise CheckFailedError(otherwise_called)
    _require_launches(answer, fresh, source, model, draw)
    return fresh


def _require_values(answer: ScheduleAnswer, artifact: Artifact, source: Traced, draw: Draw, *, gradients: bool) -> None:
    fresh = artifact.with_tensors(source.tensors)
    draws = draw.integer(0, 2**31)  # so that dropouts of both remove the same elements
    # gradients in fp64, where rounding in any number of layers stays far below the effect of a wrong one
    exact = artifact.with_tensors({name: tensor.double() for name, tensor in source.tensors.items()})
    cases = [draw_inputs(specs, draw) for specs in (source.program.inputs, *source.program.others)]
    for inputs in cases:
        require_equal(answer, source, fresh, inputs, draw, False, draws=draws)
    for inputs in cases if gradients else ():
        require_equal(answer, source, exact, tuple(i.double() for i in inputs), draw, True, draws=draws)


def _require_launches(answer: ScheduleAnswer, artifact: Artifact, source: Traced, model: Scheduled, draw: Draw) -> None:
    if model.launches is None:
        return
    further = sum(max(0, artifact.count(target) - most) for target, most in model.uncounted.items())
    found = answer.run(artifact, draw_inputs(source.program.inputs, draw), count=True).counted.launches - further
    answer.counted.update(launches=found, launches_minimum=model.launches)
    if found > model.launches:
        raise CheckFailedError(
            f"In the model {model.name} the result launches {found} operators; {model.launches} are enough.",
            share=model.launches / found,
        )


def _source(model: Scheduled, encoder: schedule_models.Encoder) -> Traced:
    """Return the model, or the part to check, as a program for comparison; it shares the encoder's weights."""
    part = encoder.get_submodule(model.part)
    inputs, *others = [_inputs(model, sequence) for sequence in (SEQUENCE, 1)]
    program = Program(model.name, lambda: part, inputs, 0, tuple(others), model.reason, training=model.training)
    tensors = {name: tensor.detach() for name, tensor in part.state_dict(keep_vars=True).items()}
    name = f"{model.name}{f', part {model.part},' * bool(model.part)}"
    return Traced(replace(program, name=name), program.trace(), {}, tensors)


def _inputs(model: Scheduled, sequence: int) -> tuple[TensorSpec, ...]:
    hidden = TensorSpec((BATCH, sequence, model.arguments.get("width", WIDTH)))
    return (hidden, hidden) if model.part else (hidden, TensorSpec((BATCH, 1, 1, sequence)))


def _redraw(encoder: schedule_models.Encoder, draw: Draw) -> None:
    """Give every parameter a fresh value; matrices keep the magnitude of what they multiply.

    Otherwise scores of attention are so large that softmax saturates. Then rounding grows with each layer, eager's by
    chance less than that of a right answer, and the error rule does not hold.
    """
    with torch.no_grad():
        for parameter in encoder.parameters():
            scale = parameter.shape[-1] ** -0.5 if parameter.dim() > 1 else 1.0
            parameter.copy_(draw.normal(*parameter.shape, scale=scale))


def _require_names(artifact: Artifact, source: Traced, model: Scheduled) -> None:
    unknown = [name for name in artifact.tensors if name not in source.tensors]
    if unknown:
        raise CheckFailedError(
            f"In the model {model.name} the result reads {', '.join(unknown[:3])}, which its state dict did not have: "
            "a schedule keeps the parameters where they are, under their names."
        )


def _require_no_more_work(artifact: Artifact, source: Traced, model: Scheduled) -> None:
    """Raise `CheckFailedError` if the result computes in more calls than the model: nothing took the place of others.

    So a fused call beside the old ones, multiplied by zero or read by a write, counts for nothing.
    """
    before, after = (
        sum(call.packet.removeprefix("torch.") not in FORMS for call in calls.values())
        for calls in (read_calls(source.module), artifact.called)
    )
    separated = artifact.count(LINEAR)  # a bias that is an operator of its own is one call more
    if after > before + separated:
        raise CheckFailedError(
            f"In the model {model.name} the result computes in {after} calls, and the model in {before}. A new call "
            "takes the place of old ones; erase these."
        )


def _miscounted(artifact: Artifact, model: Scheduled) -> CheckFailedError | None:
    """Return the error of a result that calls something too rarely or too often."""
    counts = {
        target: (artifact.count(target, unneeded=not n), n if isinstance(n, range) else range(n, n + 1))
        for target, n in model.counts.items()
    }
    for target, (found, allowed) in counts.items():
        if found not in allowed:
            names = [call.operator for call in artifact.called.values()]
            why = model.says.get(target, {}).get(found) or (model.explain and model.explain(names)) or model.reason
            why = why or ("" if not found else SOME if found < allowed[0] else MORE)
            asked = f"expected {times(allowed[-1])}. {why}".rstrip()
            return CheckFailedError(
                f"In the model {model.name} the result calls {target} {times(found)}; {asked}",
                share=share_of_places(counts.values() if model.steps else [(found, allowed)]),
            )
    return None


def _otherwise_called(artifact: Artifact, model: Scheduled) -> str:
    """Return a sentence about a call without the model's probability, mode or eps; empty if there is none."""
    for target, literals in model.literals.items():
        for call in artifact.called.values():
            missing = [v for v in literals if not any(type(v) is type(g) and v == g for g in call.numbers)]
            if call.is_of(target) and missing:
                given = ", ".join(map(str, call.numbers)) or "no numbers"
                return (
                    f"In the model {model.name} {target} is called with {given}; the model has "
                    f"{', '.join(map(str, literals))}: probability, mode and eps are to be carried over. {model.reason}"
                ).rstrip()
    return ""


def _miswired(artifact: Artifact, model: Scheduled) -> str:
    """Return a sentence about an argument of a fused call, or a linear layer, that is the wrong one; empty if none."""
    for path in layers_as_functions(artifact) if model.layer else ():
        if path.rpartition(".")[2] != model.layer:
            return f"In the model {model.name} the linear layer {path} was decomposed; its name is not {model.layer!r}."
    faults = (wiring.fault(artifact, target) for target, wiring in model.wiring.items())
    return next((f"In the model {model.name}: {fault}." for fault in faults if fault), "")
