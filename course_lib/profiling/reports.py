"""What a report on inference holds, and how it is shown: as text, as plain data, as a picture."""

import dataclasses
import statistics
from dataclasses import dataclass
from typing import Any

from course_lib.profiling.memory import format_bytes
from course_lib.profiling.operators import OperatorUse
from course_lib.profiling.plotting import Plot, plot_lines
from course_lib.timing.environment import Environment
from course_lib.timing.timings import Timing, format_us

COLUMNS = ("batch", "latency", "fastest", "90 % below", "items/s", "peak memory", "GFLOP", "GFLOP/s")
HEAVIEST = 4  # operators that the text names


@dataclass(frozen=True)
class BatchCost:
    """One inference at one batch size."""

    batch_size: int
    latency: Timing  # every sample, in microseconds
    peak_bytes: int  # at its height, beyond parameters and inputs
    flops: int  # of matrix products, convolutions and attention

    @property
    def median_us(self) -> float:
        """The latency of one inference."""
        return self.latency.median_us

    @property
    def p90_us(self) -> float:
        """The latency that nine inferences of ten keep to."""
        return statistics.quantiles(self.latency.times_us, n=10, method="inclusive")[-1]

    @property
    def throughput_per_s(self) -> float:
        """How many items, not batches, are done in a second."""
        return self.batch_size / self.median_us * 1e6

    @property
    def gflops_per_s(self) -> float:
        """Billions of floating-point operations in a second."""
        return self.flops / self.median_us / 1e3


@dataclass(frozen=True)
class InferenceReport:
    """What inferences of a model cost: latency, throughput, memory and arithmetic, with the machine."""

    model: str
    parameters: int
    parameter_bytes: int
    batches: tuple[BatchCost, ...]
    operators: tuple[OperatorUse, ...]  # of the largest batch, most of its own time first
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
        lines = [COLUMNS, *map(_row, self.batches)]
        widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
        heaviest = (f"{use.name} {format_us(use.self_cpu_us)}" for use in self.operators[:HEAVIEST])
        return "\n".join(
            [
                f"{self.model}: {self.parameters:,} parameters, {format_bytes(self.parameter_bytes)}",
                *("  ".join(map(str.rjust, line, widths)) for line in lines),
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
        f"{batch.throughput_per_s:,.0f}" if batch.throughput_per_s >= 1000 else f"{batch.throughput_per_s:.4g}",
        format_bytes(batch.peak_bytes),
        f"{batch.flops / 1e9:.3g}",
        f"{batch.gflops_per_s:.3g}",
    )
