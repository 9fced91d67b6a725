"""Passes that make a training step cheaper: a gate of values first, then counters of the graph that the host rebuilt.

The gate compares outputs, gradients, dropout masks and the losses of some steps of training with those of the program,
and finds every parameter under its name. Only behind it the clean worker counts the step. Loss and gradients of the
very step that was counted are compared as well. No number of the answer is used. How the answer found its graph does
not matter.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from math import prod

import torch

from autograder.host import shared_inputs
from autograder.host.artifacts import Artifact, read_artifact
from autograder.host.checks.drawn_encoder import drawn_encoder
from autograder.host.checks.known_by_heart import said_by_heart
from autograder.host.checks.step_mistakes import named_mistake
from autograder.host.comparison import require_close
from autograder.host.draw import Draw
from autograder.host.exercise import AnswerRefusedError, CheckFailedError
from autograder.host.kinds import schedule_models
from autograder.host.kinds.graph import GraphAnswer
from autograder.host.kinds.graph_values import require_equal, require_gradients
from autograder.host.point_shares import share_among
from autograder.host.session import AnswerFailedError
from autograder.host.traced import Program, TensorSpec, Traced, any_fp64, draw_inputs, traced
from autograder.protocol import Result
from autograder.protocol.requests.answers import WrittenGraph
from course_lib.kernels.replayed_draws import ReplayedDraws

Counters = Mapping[str, int]
STEPS, STEPS_OF_OTHERS = 20, 5  # of training: in the gate, and in other programs, whose values are compared as well
RATE = 0.05
TOLERANCE = 1e-8  # of a loss in fp64 after `STEPS` steps, relative
FUSE_MORE = "Look for the residual as first and as second term."
SAVE_LESS = "The kernels are few enough: what they read, write and keep for backward can be less."
LEAST = 0.25  # of a ratio: one counter alone cannot pull the mean below its fourth root
LARGEST_SEED = 2**31


@dataclass(frozen=True)
class Step:
    """A model to train for a step, and the counters of a good result, which earn all points.

    `arguments` are those of `schedule_models.Encoder` that stay in each grading; `drawn_encoder` draws others. `best`
    maps the names of counters to their values.
    """

    name: str  # completes "in the program ..."
    arguments: Mapping[str, object]
    best: Counters
    batch: int = 2
    sequence: int = 16

    def program(self) -> Program:
        """Return the model as a program in training mode."""
        width = int(str(self.arguments["width"]))
        inputs = TensorSpec((self.batch, self.sequence, width)), TensorSpec((self.batch, 1, 1, self.sequence))
        encoder: Callable[..., torch.nn.Module] = schedule_models.Encoder
        return Program(self.name, lambda: encoder(**self.arguments), inputs, 0, training=True)

    def drawn(self, draw: Draw) -> "Step":
        """Return the step of the same model with fresh names and numbers, on which no counter depends."""
        return replace(self, arguments={**drawn_encoder(draw), **self.arguments})


def cheaper(steps: Sequence[Step], *, gate: Step) -> Callable[[GraphAnswer, Draw], None]:
    """Return a check of the score of each step; the steps share its points, none of which count without the gate."""

    def run(answer: GraphAnswer, draw: Draw) -> None:
        if gate not in steps and gate.name not in answer.right:  # once a grading; it takes as long as a check
            passed(answer, gate, draw)
        share_among(
            steps, lambda step: _told_by_heart(answer, step, gate, draw), noun="models", verdict="have all points"
        )

    return run


def score(found: Counters, before: Counters, best: Counters) -> float:
    """Return the share of the points: 0 for the counters `before`, and 1 for `best` or lower.

    >>> before, best = {"launches": 8}, {"launches": 4}
    >>> score({"launches": 8}, before, best), score({"launches": 3}, before, best)
    (0.0, 1.0)

    It follows the geometric mean of best/found over all counters, where each ratio is held between `LEAST` and 1. Where
    `before` is as good as `best` nothing can become cheaper, and the share is 0: both counters come from a worker.
    """

    def mean(counted: Counters) -> float:
        return prod(min(1.0, max(LEAST, best[name] / max(1, counted[name]))) for name in best) ** (1 / len(best))

    start = mean(before)
    if start >= 1:
        return 0.0
    return min(1.0, max(0.0, (mean(found) - start) / (1 - start)))


def _told_by_heart(answer: GraphAnswer, step: Step, gate: Step, draw: Draw) -> None:
    """Require the score of a step; where the gate's earns nothing, say so if the notebook's own model is right."""
    try:
        _require_score(answer, step, gate, draw)
    except AnswerRefusedError:
        raise
    except CheckFailedError as error:
        if step is not gate or error.share:
            raise
        message = f"{error} {said_by_heart(answer, draw)}".rstrip()
        raise CheckFailedError(message, changes=error.changes) from None
    except AnswerFailedError as error:
        if step is not gate or error.fatal or error.unanswered:
            raise
        message = f"{error.message} {said_by_heart(answer, draw)}".rstrip()
        raise AnswerFailedError(error.status, message, fatal=False) from None


def _require_score(answer: GraphAnswer, step: Step, gate: Step, draw: Draw) -> None:
    right = passed(answer, step, draw, steps=STEPS if step is gate else STEPS_OF_OTHERS)
    source, inputs, draws = right.source, draw_inputs(right.source.program.inputs, draw), draw.integer(0, LARGEST_SEED)
    found = counted(answer, right, right.artifact, inputs, draws)
    before = counted(answer, replace(right, by_position=()), _unchanged(source), inputs, draws)
    share = score(found, before, step.best)
    answer.counted.update(found)
    if share < 1:
        listed = ", ".join(f"{name} {found[name]:,} (before {before[name]:,})" for name in step.best)
        advice = advice_on(found, step.best) if share else "Nothing became cheaper."
        raise CheckFailedError(f"In the program {step.name} the step is right. It has: {listed}. {advice}", share=share)


def advice_on(found: Counters, best: Counters) -> str:
    """Return a sentence that names the counters above the best, and one on how to lower them."""
    above = [name for name in best if found[name] > best[name]]
    fewer = FUSE_MORE if {"kernels", "launches"} & {*above} else SAVE_LESS
    return f"Still above a good result: {', '.join(above)}. {fewer}"


def _unchanged(source: Traced) -> Artifact:
    """Return the program's own graph, as an artifact."""
    tensors = [shared_inputs.to_raw(tensor) for tensor in source.tensors.values()]
    written = Result(WrittenGraph(source.graph, tuple(source.tensors)), tensors)
    return read_artifact(written, max_nodes=len(source.graph["nodes"]))


def counted(
    answer: GraphAnswer, of: "Passed", artifact: Artifact, inputs: tuple[torch.Tensor, ...], draws: int
) -> Counters:
    """Return the counters of a step of a rebuilt graph, as the clean worker counts them.

    Raises `CheckFailedError` unless the step that was counted has the loss and the gradients of the program's.
    """
    names = [name for name, _ in of.source.module.named_parameters()]
    cost, reply = answer.count_step(artifact, inputs, by=names, draws=draws)
    doubles = tuple(each.double() for each in inputs)
    (loss, *gradients), (exact, *truths) = (_step(of, names, given, draws) for given in (inputs, doubles))
    where = f" in the program {of.source.program.name}, in the step that is counted"
    try:
        require_close(reply.outputs[0], exact, loss, "The loss", where)
        require_gradients(reply, truths, gradients, [f"`{name}`" for name in names], where)
    except CheckFailedError as error:
        raise CheckFailedError(str(error), changes=True) from None
    return asdict(cost)


def _step(of: "Passed", names: Sequence[str], inputs: tuple[torch.Tensor, ...], draws: int) -> list[torch.Tensor]:
    """Return the loss of the program, and its gradients."""
    leaves = of.source.leaves(names, in_fp64=any_fp64(inputs))
    with ReplayedDraws(draws, of.by_position):
        loss = of.source.reference(*inputs, parameters=leaves).square().mean()
    return [loss.detach(), *torch.autograd.grad(loss, list(leaves.values()))]


@dataclass(frozen=True)
class Passed:
    """A program, and the graph of an answer that trains as it does."""

    source: Traced
    artifact: Artifact
    by_position: tuple[int, ...]
    """The draws of the graph's own kernels."""


def passed(answer: GraphAnswer, step: Step, draw: Draw, *, steps: int = STEPS) -> Passed:
    """Return the program and the answer's graph of it; raises `CheckFailedError` unless they train alike."""
    source = traced(step.drawn(draw).program(), draw)
    redraw(source, draw)
    artifact = answer.transform(source, own=True)
    require_names(artifact, source)
    redraw(source, draw)  # so that weights that were copied into the graph give wrong results
    fresh = artifact.with_tensors(source.tensors)
    exact = artifact.with_tensors({name: tensor.double() for name, tensor in source.tensors.items()})
    inputs, draws = draw_inputs(source.program.inputs, draw), draw.integer(0, LARGEST_SEED)
    doubles = tuple(each.double() for each in inputs)
    try:
        by_position = answer.drawn_by_position(fresh, inputs)
    except AnswerFailedError as error:
        raise CheckFailedError(f"The graph does not run: {error.message}", changes=True) from None
    try:
        require_equal(answer, source, fresh, inputs, draw, False, draws=draws, by_position=by_position)
        require_equal(answer, source, exact, doubles, draw, True, draws=draws, by_position=by_position)
    except CheckFailedError as error:
        raise _told(answer, source, exact, doubles, draws, by_position, error) from None
    _require_losses(answer, source, artifact, doubles, draws, by_position, steps=steps)
    answer.right.add(step.name)
    return Passed(source, fresh, by_position)


def _told(
    answer: GraphAnswer,
    source: Traced,
    exact: Artifact,
    inputs: tuple[torch.Tensor, ...],
    draws: int,
    by_position: Sequence[int],
    error: CheckFailedError,
) -> CheckFailedError:
    """Return the error, or one that names a likely mistake if the answer's own kernels make it."""
    if not exact.own.declared:
        return error
    if str(error).startswith("The gradient"):
        return CheckFailedError(f"{error} The outputs are right: look at what backward returns.", changes=True)
    try:
        (output,) = answer.run(exact, inputs, training=True, draws=draws).outputs
    except (AnswerFailedError, ValueError):  # it does not run, or has several outputs
        return error
    said = named_mistake(source, output, inputs, draws, by_position)
    return CheckFailedError(f"In the program {source.program.name}: {said}", changes=True) if said else error


def redraw(source: Traced, draw: Draw) -> None:
    """Give parameters fresh values; matrices keep the magnitude of what they multiply, so no softmax saturates."""
    source.redraw(draw)
    source.moderate()


def require_names(artifact: Artifact, source: Traced) -> None:
    """Raise `CheckFailedError` unless the graph has exactly the program's parameters and buffers, by name."""
    names = set(source.graph["tensors"])
    if missing := sorted(names - set(artifact.graph["tensors"])) or sorted(set(artifact.graph["tensors"]) - names):
        raise CheckFailedError(
            f"In the program {source.program.name} the state dict differs at `{missing[0]}`: a checkpoint of the model "
            "must load into the result, so keep all parameters under their names, and add none.",
            changes=True,
        )


def _require_losses(
    answer: GraphAnswer,
    source: Traced,
    artifact: Artifact,
    inputs: tuple[torch.Tensor, ...],
    draws: int,
    by_position: Sequence[int],
    *,
    steps: int,
) -> None:
    """Train program and graph for some steps in fp64, with the same masks; their losses must be equal."""
    names = [name for name, _ in source.module.named_parameters()]
    ours = {name: parameter.detach().double() for name, parameter in source.module.named_parameters()}
    theirs = {name: tensor.double() for name, tensor in source.tensors.items()}
    for number in range(steps):
        leaves = {name: value.clone().requires_grad_() for name, value in ours.items()}
        with ReplayedDraws(draws + number, by_position):
            output = source.reference(*inputs, parameters=leaves)
        loss = output.square().mean()
        gradients = torch.autograd.grad(loss, list(leaves.values()))
        ours = {name: ours[name] - RATE * each for name, each in zip(names, gradients, strict=True)}
        found = _advanced(answer, artifact.with_tensors(theirs), inputs, output.detach(), draws + number, theirs, names)
        right = float(loss.detach())
        if not abs(found - right) <= TOLERANCE * max(1.0, right):
            raise CheckFailedError(
                f"In the program {source.program.name} the loss of training step {number + 1} is {found:.6g}; "
                f"{right:.6g} is right.",
                changes=True,
            )


def _advanced(
    answer: GraphAnswer,
    artifact: Artifact,
    inputs: tuple[torch.Tensor, ...],
    output: torch.Tensor,
    draws: int,
    weights: dict[str, torch.Tensor],
    names: Sequence[str],
) -> float:
    """Return the loss of the graph, and change `weights` by one step along its gradients.

    The slope of the loss is that at the program's `output`, which the graph's own equals where its loss is right.
    """
    slope = 2 * output / output.numel()
    try:
        reply = answer.run(artifact, inputs, cotangents=(slope,), training=True, draws=draws, by=names)
    except AnswerFailedError as error:
        raise CheckFailedError(f"The graph does not train: {error.message}", changes=True) from None
    first = reply.outputs[0]
    if first.shape != output.shape:
        raise CheckFailedError(f"The graph gives shape {tuple(first.shape)} in training.", changes=True)
    for name, gradient in zip(names, reply.gradients[len(inputs) :], strict=True):
        if gradient is not None:
            weights[name] = weights[name] - RATE * gradient
    return float(first.square().mean())
