"""Exercise 16.2: compile the parts of a task so that its checkpoints stay those of the eager task."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch.nn import functional as F

from autograder.exercises.programs import lightning_runs
from autograder.exercises.programs.captured_parts import CapturedGraph, read_captured, require_computed
from autograder.exercises.programs.task_language.task_text import require_small_language
from autograder.host.channel import MalformedAnswerError
from autograder.host.draw import Draw
from autograder.host.exercise import Check, CheckFailedError, Exercise, Kind
from autograder.host.kinds.analysis import AnalysisAnswer
from autograder.host.kinds.reports import Report, counts, entries, numbers
from autograder.host.point_shares import share_among

LARGEST_SEED = 10**6
COMBINATIONS = tuple(f"{saves} to {loads}" for saves in ("eager", "compiled") for loads in ("eager", "compiled"))
MODEL = "a model"
TORCH_PARTS = tuple(kind for kind in lightning_runs.PARTS if kind != MODEL)


@dataclass(frozen=True)
class Fitted:
    """The graphs captured in training and in validation, and the first loss of the training."""

    training: Sequence[CapturedGraph]
    validation: Sequence[CapturedGraph]
    loss: float
    expected: float


def fitted(answer: AnalysisAnswer, draw: Draw, kind: str, train: Sequence[int], held_out: Sequence[int]) -> Fitted:
    """Return what a task of this kind captures in training and validation on batches of these sizes."""
    require_small_language(answer)
    seed, factor, sizes = *drawn_run(draw), {"train": list(train), "held_out": list(held_out)}
    report = entries(answer.employ(lightning_runs, "compile_and_fit", kind=kind, seed=seed, factor=factor, **sizes))
    require_task(report)
    captured = read_captured(report.get("graphs"))
    (count,), (loss,) = counts([report.get("training")], 1), numbers([report.get("loss")], 1)
    batch = lightning_runs.rows(seed, train[0])
    expected = float(F.mse_loss(outputs(kind, seed, batch, factor), batch))
    return Fitted(captured[:count], captured[count:], loss, expected)


def require_task(report: Report) -> None:
    """Raise `CheckFailedError` if the answer returned no task."""
    if "class" in report:
        raise CheckFailedError(
            f"compile_task returned {str(report['class'])[:40]}; return the task, which is a LightningModule."
        )


def drawn_run(draw: Draw) -> tuple[int, float]:
    """Return a seed for weights, and the factor that each captured graph multiplies its result with."""
    return draw.integer(0, LARGEST_SEED), draw.integer(110, 150) / 100


def outputs(kind: str, seed: int, hidden: torch.Tensor, factor: float) -> torch.Tensor:
    """Return the outputs of a task of this kind with weights of this seed, computed in the host."""
    with torch.no_grad():
        for part in lightning_runs.parts_of(kind, seed).values():
            hidden = part(hidden) * factor
    return hidden


def require_captured(answer: AnalysisAnswer, draw: Draw, found: Fitted, kind: str, sizes: Sequence[int]) -> None:
    """Raise `CheckFailedError` unless the graphs of both phases compute each part, for batches of these sizes."""
    if not found.training:
        raise CheckFailedError(
            f"For a task that holds {kind}, the given backend got 0 graphs in training. "
            "training_step calls the parts, not the task: compile each part with this backend. compile() of a "
            "class of torch.nn captures nothing."
        )
    for phase, captured in (("training", found.training), ("validation", found.validation)):
        require_computed(answer, draw, captured, f"For a task that holds {kind}, in {phase}", kind, sizes)
    if not math.isclose(found.loss, found.expected, abs_tol=1e-4):
        raise CheckFailedError(
            f"For a task that holds {kind}, the first loss is {found.loss:.5f}; the captured graphs give "
            f"{found.expected:.5f}. The backend changes what a graph returns: the compiled parts must be what runs."
        )


def captures(*kinds: str) -> Callable[[AnalysisAnswer, Draw], None]:
    """Return a check that tasks of all these kinds are captured."""

    def run(answer: AnalysisAnswer, draw: Draw) -> None:
        size = draw.integer(6, 9)

        def require(kind: str) -> None:
            require_captured(answer, draw, fitted(answer, draw, kind, [size] * 3, [size]), kind, [size])

        share_among(kinds, require, together=True)

    return run


def _recompiles(answer: AnalysisAnswer, draw: Draw) -> None:
    """Check that no part is captured more than once for training and once for validation; last batches are smaller."""
    size, last = draw.integer(6, 9), draw.integer(2, 4)
    found = fitted(answer, draw, MODEL, [size, size, last], [size, last])
    if len(found.training) > 1 or len(found.validation) > 1:
        raise CheckFailedError(
            f"With batches of {size}, the last of {last}, {len(found.training)} graphs were captured in training and "
            f"{len(found.validation)} in validation; one each is enough. Compile each part once, and let the size of a "
            "batch be dynamic."
        )
    require_captured(answer, draw, found, MODEL, [size, last, size + 1])


def exchange(answer: AnalysisAnswer, draw: Draw, kind: str, seed: int, factor: float) -> Report:
    """Return what was found in each of the four combinations, by name, if the compiled tasks were captured."""
    require_small_language(answer)
    report = entries(answer.employ(lightning_runs, "exchange_checkpoints", kind=kind, seed=seed, factor=factor))
    require_task(report)
    captured = read_captured(report.get("graphs"))
    if not captured:
        raise CheckFailedError(
            "The given backend got no graph, so the checkpoints of a compiled task cannot be tried. Compile each part "
            "with it."
        )
    require_computed(answer, draw, captured, "While checkpoints were exchanged", kind, [4])
    return entries(report.get("found"))


def require_exchanged(found: Report, combination: str, expected: torch.Tensor) -> None:
    """Raise `CheckFailedError` unless a checkpoint was loaded and gave the saved task's outputs."""
    result = found.get(combination)
    if isinstance(result, str):
        raise CheckFailedError(
            f"The checkpoint could not be loaded, {combination}: {' '.join(result.split())[:160]} Compile without "
            "putting another module in the place of a part."
        )
    try:
        output = torch.tensor(result, dtype=expected.dtype)
    except (TypeError, ValueError, RuntimeError):
        raise MalformedAnswerError from None
    alike = (output.shape, output.dtype) == (expected.shape, expected.dtype)
    if not alike or not torch.allclose(output, expected, atol=1e-4):
        far = float((output - expected).abs().max()) if output.shape == expected.shape else math.inf
        raise CheckFailedError(
            f"After loading, {combination}, the outputs differ from those of the saved weights by up to {far:.2g}. "
            "The compiled part must use the weights that were loaded."
        )


def exchanged(kind: str) -> Callable[[AnalysisAnswer, Draw], None]:
    """Return a check of all four combinations of saving and loading."""

    def run(answer: AnalysisAnswer, draw: Draw) -> None:
        seed, factor = drawn_run(draw)
        found, rows = exchange(answer, draw, kind, seed, factor), lightning_runs.rows(seed, 4)

        def require(combination: str) -> None:
            runs_graphs = combination.endswith("to compiled")
            require_exchanged(found, combination, outputs(kind, seed, rows, factor if runs_graphs else 1.0))

        share_among(COMBINATIONS, require, noun="combinations", together=True)

    return run


EXERCISE = Exercise(
    title="Compile without breaking checkpoints",
    kind=Kind.ANALYSIS,
    entry_point="compile_task",
    points=10,
    wall_s=180,
    hints=(
        "training_step calls the parts of the task. Compile these, not the task, and count the graphs.",
        "A checkpoint's names are those of modules. torch.compile(part) is a new module around the part, so its name "
        "appears in them; a compiled forward is a function, and has none.",
        "For each part of task.children(): part.forward = torch.compile(part.forward, backend=backend, dynamic=...).",
    ),
    checks=(
        Check("a model is captured", "captures", 1, captures(MODEL)),
        Check("four combinations of saving and loading", "checkpoints", 3, exchanged(MODEL)),
        Check("smaller last batches", "recompiles", 3, _recompiles),
    ),
)
