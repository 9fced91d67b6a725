"""`inference_report`: what one inference of a model costs, on this machine."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch

from course_lib.profiling.batches import Inputs, batch_size_of, call_with, device_of, resized
from course_lib.profiling.flops import count_flops
from course_lib.profiling.operators import OperatorUse, profile_operators
from course_lib.profiling.reports import BatchCost, InferenceReport
from course_lib.timing.environment import environment
from course_lib.timing.measuring import time_callable


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
    or cut. Without `batch_sizes` the inputs are taken as they are. A module is put into evaluation, without
    gradients, and afterwards left as it was, also after a failure.

    The report prints as text; `.to_json()` gives plain data with all samples, `.plot()` a picture. The budget is for
    the samples of each batch size. Not yet run on CUDA. Raises `ProfilingError` for inputs without a batch.
    """
    given = batch_size_of(inputs)
    modules = list(model.modules()) if isinstance(model, torch.nn.Module) else []
    weights = list(model.parameters()) if isinstance(model, torch.nn.Module) else []
    options: dict[str, Any] = {"max_samples": max_samples, "warmup_s": warmup_s, "budget_s": budget_s}
    with _evaluating(modules), torch.no_grad():
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
    """Put modules into evaluation, and each back into what it was."""
    were_training = [module.training for module in modules]
    try:
        for module in modules:
            module.training = False
        yield
    finally:
        for module, was_training in zip(modules, were_training, strict=True):
            module.training = was_training
