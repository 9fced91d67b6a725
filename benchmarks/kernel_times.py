"""Measure the fused operators as fractions of the speed at which this machine copies memory."""

import dataclasses
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import torch
import torch._functorch.config

from benchmarks.kernel_cases import Operator, Program, operators
from course_lib.timing import time_callable
from course_lib.timing.clocks import Timing

FORWARD_TARGET, BACKWARD_TARGET = 0.85, 0.70  # of copy bandwidth, at 35,000 rows and more
ENOUGH_ROWS = 35_000
COPY_BYTES = 2**29  # larger than any cache, and small compared with the memory


@dataclasses.dataclass(frozen=True)
class Plan:
    """Hold the sizes to measure and the time to spend."""

    device: str
    sizes: tuple[tuple[int, int], ...]  # rows, columns
    dtype: torch.dtype
    copy_bytes: int
    budget_s: float  # for all cases; cases that would begin later are reported as not measured
    sample_s: float  # for one program
    compiler: Callable[[Program], Program]


def cuda_plan() -> Plan:
    """Return the plan for a GPU: the sizes of a BERT layer, base and large, and long rows."""
    sizes = ((65536, 768), (65536, 1024), (8192, 8192))
    # Each size is compiled separately, like our kernels; one program for all sizes would be a slower peer.
    compiler = lambda program: torch.compile(program, dynamic=False)  # noqa: E731  # beside its likeness
    return Plan("cuda", sizes, torch.bfloat16, COPY_BYTES, 140.0, 0.1, compiler)


def dry_plan() -> Plan:
    """Return the plan for a dry run on a CPU: tiny tensors, and a compiler that compiles nothing."""
    compiler = lambda program: torch.compile(program, backend="aot_eager")  # noqa: E731  # beside its likeness
    return Plan("cpu", ((64, 32),), torch.float32, 2**20, 60.0, 0.005, compiler)


@dataclasses.dataclass(frozen=True)
class Measured:
    """Hold the time of one program in one direction, compared with a copy of as many bytes."""

    operator: str
    rows: int
    columns: int
    dtype: str
    direction: str  # "forward" or "backward"
    program: str
    least_bytes: int
    median_us: float
    spread_us: float
    samples: int
    fraction_of_copy: float  # the time of a copy of the least bytes, over the time taken
    notes: tuple[str, ...] = ()


@dataclasses.dataclass(frozen=True)
class Report:
    """Hold all measurements, and the cases that failed or did not fit into the budget."""

    device: str
    copy_gb_per_s: float
    measured: tuple[Measured, ...]
    left_out: tuple[str, ...]

    def to_json(self) -> dict[str, Any]:
        """Return everything as plain data."""
        return dataclasses.asdict(self)

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> "Report":
        """Return the report that `to_json` gave."""
        measured = tuple(Measured(**{**one, "notes": tuple(one["notes"])}) for one in data["measured"])
        return cls(data["device"], data["copy_gb_per_s"], measured, tuple(data["left_out"]))


def measure_kernels(plan: Plan, on_progress: Callable[[Report], None] = lambda report: None) -> Report:
    """Measure every operator in every size, until the budget is spent; report progress after each operator."""
    torch._functorch.config.donated_buffer = False  # the backward pass runs many times on the same saved tensors
    end_s = time.monotonic() + plan.budget_s
    copy_gb_per_s = copy_bandwidth(plan)
    measured: list[Measured] = []
    left_out: list[str] = []
    for rows, columns in plan.sizes:
        for operator in operators(plan.compiler):
            name = f"{operator.name} {rows} × {columns}"
            if time.monotonic() > end_s:
                left_out.append(f"{name}: no time was left")
                continue
            for program_name, program in operator.programs(plan.compiler):
                try:
                    measured += times(plan, operator, (rows, columns), (program_name, program), copy_gb_per_s)
                except Exception as error:  # one program that fails must not stop the others
                    left_out.append(f"{name} {program_name}: {type(error).__name__}: {str(error).splitlines()[0]}")
            print(f"  {name}", flush=True)
            on_progress(Report(plan.device, copy_gb_per_s, tuple(measured), tuple(left_out)))
    return Report(plan.device, copy_gb_per_s, tuple(measured), tuple(left_out))


def copy_bandwidth(plan: Plan) -> float:
    """Return how many GB are read and written a second by a copy that fits no cache."""
    source = torch.ones(plan.copy_bytes, dtype=torch.uint8, device=plan.device)
    target = torch.empty_like(source)
    timing = _timed(plan, lambda: target.copy_(source))
    return 2 * plan.copy_bytes / timing.median_us / 1e3


def times(
    plan: Plan, operator: Operator, size: tuple[int, int], program: tuple[str, Program], copy_gb_per_s: float
) -> Iterator[Measured]:
    """Yield the times of one program, forward and backward."""
    tensors = operator.tensors(*size, plan.dtype, plan.device)
    output = program[1](*tensors)
    grad = torch.randn_like(output)
    directions: tuple[tuple[str, int, Callable[[], object]], ...] = (
        ("forward", operator.forward_elements, lambda: program[1](*tensors)),
        ("backward", operator.backward_elements, lambda: torch.autograd.grad(output, tensors, grad, retain_graph=True)),
    )
    for direction, elements, call in directions:
        timing = _timed(plan, call)
        least_bytes = elements * output.numel() * output.element_size()
        yield Measured(
            operator=operator.name,
            rows=size[0],
            columns=size[1],
            dtype=str(plan.dtype).removeprefix("torch."),
            direction=direction,
            program=program[0],
            least_bytes=least_bytes,
            median_us=timing.median_us,
            spread_us=timing.spread_us,
            samples=len(timing.times_us),
            fraction_of_copy=least_bytes / copy_gb_per_s / 1e3 / timing.median_us,
            notes=timing.notes,
        )


def _timed(plan: Plan, call: Callable[[], object]) -> Timing:
    return time_callable(call, device=plan.device, warmup_s=plan.sample_s / 5, budget_s=plan.sample_s)


def missed_targets(report: Report) -> list[str]:
    """Return a sentence for each of our kernels that is slower than it should be; the targets are for CUDA."""
    if report.device != "cuda":
        return []
    by_key = {(m.operator, m.rows, m.columns, m.direction, m.program): m for m in report.measured}
    missed = []
    for ours in report.measured:
        if ours.program != "kernel":
            continue
        what = f"{ours.operator} {ours.direction} at {ours.rows} × {ours.columns}"
        target = FORWARD_TARGET if ours.direction == "forward" else BACKWARD_TARGET
        if ours.rows >= ENOUGH_ROWS and ours.fraction_of_copy < target:
            missed.append(f"{what}: {ours.fraction_of_copy:.0%} of copy bandwidth, of {target:.0%}")
        compiled = by_key.get((ours.operator, ours.rows, ours.columns, ours.direction, "compile"))
        if compiled and ours.median_us > compiled.median_us:
            missed.append(f"{what}: {ours.median_us:.1f} µs, torch.compile {compiled.median_us:.1f} µs")
    return missed


def as_markdown(report: Report) -> str:
    """Return the table: a row for each operator, direction and size, and a column for each program."""
    programs = ("eager", "compile", "peer", "kernel")
    head = ["operator", "size", "direction", *(f"{name} µs (of copy)" for name in programs), "eager ÷ kernel"]
    lines = [f"| {' | '.join(head)} |", f"|{'---|' * len(head)}"]
    rows: dict[tuple[str, str, str], dict[str, Measured]] = {}
    for one in report.measured:
        key = (one.operator, f"{one.rows} × {one.columns} {one.dtype}", one.direction)
        rows.setdefault(key, {})[one.program] = one
    for key, found in rows.items():
        cells = [_cell(found.get(name)) for name in programs]
        known = "eager" in found and "kernel" in found
        ratio = f"{found['eager'].median_us / found['kernel'].median_us:.2f}" if known else "–"
        lines.append(f"| {' | '.join([*key, *cells, ratio])} |")
    missed = missed_targets(report)
    lines += ["", f"Copy: {report.copy_gb_per_s:.0f} GB/s, read and written.", ""]
    verdict = "Targets missed:" if missed else "All targets met by what was measured."
    lines += [verdict if report.device == "cuda" else "A dry run: nothing here says anything about a GPU.", ""]
    lines += [f"- {line}" for line in missed]
    lines += ["", "Left out:", "", *(f"- {line}" for line in report.left_out)] if report.left_out else []
    return "\n".join(lines).rstrip() + "\n"


def _cell(measured: Measured | None) -> str:
    return f"{measured.median_us:.1f} ({measured.fraction_of_copy:.0%})" if measured else "–"
