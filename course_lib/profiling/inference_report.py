"""Measure what an inference of a model costs, and report it as text, plain data and a picture."""

import dataclasses
import statistics
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch

from course_lib.errors import ProfilingError
from course_lib.isolation import modes_kept
from course_lib.profiling.operator_profile import OperatorUse, count_flops, profile_operators
from course_lib.profiling.plots import Plot, plot_lines
from course_lib.show import Table, format_bytes, format_count, format_us
from course_lib.timing.clocks import Timing
from course_lib.timing.environment import Environment, environment
from course_lib.timing.measurement import time_callable

COLUMNS = ("batch", "latency", "fastest", "90 % below", "items/s", "peak memory", "GFLOP", "GFLOP/s")
HEAVIEST = 4  # operators that the text names


@dataclass(frozen=True)
class BatchCost:
    """Hold the cost of one inference at one batch size."""

    batch_size: int
    latency: Timing  # every sample, in microseconds
    peak_bytes: int  # peak, beyond parameters and inputs
    flops: int  # of matrix products, convolutions and attention

    @property
    def median_us(self) -> float:
        """Return the median latency of one inference."""
        return self.latency.median_us

    @property
    def p90_us(self) -> float:
        """Return the latency that nine of ten inferences do not exceed."""
        return statistics.quantiles(self.latency.times_us, n=10, method="inclusive")[-1]

    @property
    def throughput_per_s(self) -> float:
        """Return the number of items, not batches, in one second."""
        return self.batch_size / self.median_us * 1e6

    @property
    def gflops_per_s(self) -> float:
        """Return billions of floating-point operations in one second."""
        return self.flops / self.median_us / 1e3


@dataclass(frozen=True)
class InferenceReport:
    """Hold the cost of inferences: latency, throughput, memory and arithmetic, with the machine."""

    model: str
    parameters: int
    parameter_bytes: int
    batches: tuple[BatchCost, ...]
    operators: tuple[OperatorUse, ...]  # of the largest batch, sorted by their own time, largest first
    environment: Environment

    def to_json(self) -> dict[str, Any]:
        """Return everything as plain data, every sample included."""
        derived = ("median_us", "p90_us", "throughput_per_s", "gflops_per_s")
        batches = [
            {**{name: getattr(batch, name) for name in derived}, **dataclasses.asdict(batch)} for batch in self.batches
        ]
        return {**dataclasses.asdict(self), "batches": batches}

    def plot(self) -> Plot:
        """Return latency and throughput over the batch size, as a picture with its text."""
        sizes = [batch.batch_size for batch in self.batches]
        return plot_lines(
            "batch size",
            sizes,
            {
                "latency, ms (median)": [batch.median_us / 1e3 for batch in self.batches],
                "throughput, items a second": [batch.throughput_per_s for batch in self.batches],
            },
        )

    def __str__(self) -> str:
        table = Table(COLUMNS, tuple(map(_row, self.batches)), numbers=COLUMNS, rule="none")
        heaviest = (f"{use.name} {format_us(use.self_cpu_us)}" for use in self.operators[:HEAVIEST])
        return "\n".join(
            [
                f"{self.model}: {format_count(self.parameters)} parameters, {format_bytes(self.parameter_bytes)}",
                str(table),
                f"most time in: {', '.join(heaviest)}",
                *(
                    f"note, batch size {batch.batch_size}: {note}"
                    for batch in self.batches
                    for note in batch.latency.notes
                ),
                str(self.environment),
            ]
        )

    __repr__ = __str__


def _row(batch: BatchCost) -> tuple[str, ...]:
    return (
        str(batch.batch_size),
        format_us(batch.median_us),
        format_us(batch.latency.min_us),
        format_us(batch.p90_us),
        format_count(batch.throughput_per_s) if batch.throughput_per_s >= 1000 else f"{batch.throughput_per_s:.4g}",
        format_bytes(batch.peak_bytes),
        f"{batch.flops / 1e9:.3g}",
        f"{batch.gflops_per_s:.3g}",
    )


Inputs = Sequence[object] | Mapping[str, object]


def batch_size_of(inputs: Inputs) -> int:
    """Return the first dimension of the first tensor.

    Raises `ProfilingError` if the inputs hold no tensor with a dimension.
    """
    if isinstance(inputs, torch.Tensor) or not isinstance(inputs, (Sequence, Mapping)):
        raise ProfilingError(
            f"inference_report got a {type(inputs).__name__} as inputs; it expects a list of arguments, such as [x], "
            "or a dict of arguments by name."
        )
    for value in _values(inputs):
        if isinstance(value, torch.Tensor) and value.dim() and len(value):
            return len(value)
    raise ProfilingError("inference_report got inputs without a tensor that has a first dimension, which is the batch.")


def resized(inputs: Inputs, size: int) -> Inputs:
    """Return the inputs with the batch repeated or cut to this size; the same inputs if it has the size already.

        >>> resized([torch.tensor([1, 2]), "as it is"], 3)
        [tensor([1, 2, 1]), 'as it is']

    Raises `ProfilingError` for a size below 1.
    """
    given = batch_size_of(inputs)
    if size < 1:
        raise ProfilingError(f"inference_report got a batch size of {size}; it expects 1 or more.")
    if size == given:
        return inputs
    rows = torch.arange(size) % given
    if isinstance(inputs, Mapping):
        return {name: _taken(value, rows, given) for name, value in inputs.items()}
    return [_taken(value, rows, given) for value in inputs]


def call_with(model: Callable[..., object], inputs: Inputs) -> Callable[[], object]:
    """Return the model's call on these inputs, as a call without arguments; raise `ProfilingError` if there is none."""
    if not callable(model):
        raise ProfilingError(
            f"inference_report got a {type(model).__name__} as model; it expects a module or a function, then its "
            "inputs in a list."
        )
    return partial(model, **inputs) if isinstance(inputs, Mapping) else partial(model, *inputs)


def device_of(inputs: Inputs) -> str:
    """Return the device of the first tensor."""
    return next(str(value.device) for value in _values(inputs) if isinstance(value, torch.Tensor))


def _values(inputs: Inputs) -> Sequence[object]:
    return list(inputs.values()) if isinstance(inputs, Mapping) else list(inputs)


def _taken(value: object, rows: torch.Tensor, given: int) -> object:
    if not isinstance(value, torch.Tensor) or not value.dim() or len(value) != given:
        return value
    return value[rows.to(value.device)]


def inference_report(
    model: Callable[..., object],
    inputs: Inputs,
    *,
    batch_sizes: Sequence[int] = (),
    max_samples: int = 50,
    warmup_s: float = 0.1,
    budget_s: float = 2.0,
) -> InferenceReport:
    """Measure what an inference of `model` on `inputs` costs, at each of the batch sizes.

        >>> report = inference_report(torch.nn.Linear(4, 2), [torch.zeros(3, 4)], batch_sizes=(1, 8), max_samples=5)
        >>> [(batch.batch_size, batch.flops) for batch in report.batches]
        [(1, 16), (8, 128)]

    `inputs` are the arguments in order, or by name in a dict (as Hugging Face models take them). The first dimension
    of the first tensor is the batch; for another batch size, every tensor with the same first dimension is repeated
    or cut. Without `batch_sizes` the inputs are not resized. A module runs in evaluation mode without
    gradients; its mode is restored, also after a failure.

    The report prints as text; `.to_json()` gives plain data with all samples, `.plot()` a picture. The budget is for
    the samples of each batch size. Not yet run on CUDA. Raises `ProfilingError` for inputs without a batch.
    """
    given = batch_size_of(inputs)
    if isinstance(batch_sizes, int):
        raise ProfilingError(f"inference_report got batch_sizes={batch_sizes}; it expects several: ({batch_sizes},).")
    modules = list(model.modules()) if isinstance(model, torch.nn.Module) else []
    weights = list(model.parameters()) if isinstance(model, torch.nn.Module) else []
    options: dict[str, Any] = {"max_samples": max_samples, "warmup_s": warmup_s, "budget_s": budget_s}
    with modes_kept(), _evaluating(modules), torch.no_grad():
        measured = [_measure(model, resized(inputs, size), size, options) for size in batch_sizes or (given,)]
    return InferenceReport(
        model=getattr(model, "__name__", type(model).__name__),
        parameters=sum(weight.numel() for weight in weights),
        parameter_bytes=sum(weight.numel() * weight.element_size() for weight in weights),
        batches=tuple(cost for cost, _ in measured),
        operators=max(measured, key=lambda one: one[0].batch_size)[1],
        environment=environment(),
    )


def _measure(
    model: Callable[..., object], inputs: Inputs, size: int, options: dict[str, Any]
) -> tuple[BatchCost, tuple[OperatorUse, ...]]:
    """Return the cost of one batch size, and its operators."""
    call = call_with(model, inputs)
    latency = time_callable(call, device=device_of(inputs), **options)
    profile = profile_operators(call, runs=2, warmup_runs=0)
    flops = count_flops(call).total
    return BatchCost(size, latency, profile.memory.peak_bytes, flops), profile.operators


@contextmanager
def _evaluating(modules: Sequence[torch.nn.Module]) -> Iterator[None]:
    """Set modules to evaluation mode, and restore the mode of each at the end."""
    were_training = [module.training for module in modules]
    try:
        for module in modules:
            module.training = False
        yield
    finally:
        for module, was_training in zip(modules, were_training, strict=True):
            module.training = was_training
