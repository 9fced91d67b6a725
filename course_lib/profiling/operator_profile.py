"""Profile a program: the operators that take its time and memory, and its floating-point operations."""

import html
import json
import os
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch.profiler import ProfilerActivity
from torch.utils.flop_counter import FlopCounterMode

from course_lib.errors import ProfilingError
from course_lib.graph.cost import attention_on_cpu
from course_lib.show import Table, format_bytes, format_count, format_us

LOG_LEVEL, NO_MESSAGES = "KINETO_LOG_LEVEL", "6"  # one above the highest level of torch's kineto/ILoggerObserver.h
ORDERS = ("self_cpu_us", "total_cpu_us", "self_device_us", "calls", "self_memory_bytes", "name")
COLUMNS = ("operator", "calls", "self CPU", "share", "total CPU", "self device", "own memory")


CPU, CUDA = 0, 1  # types of devices in the timeline


@dataclass(frozen=True)
class MemoryUse:
    """Hold the memory of tensors, in bytes beyond what was allocated when the program began."""

    peak_bytes: int
    left_bytes: int  # still allocated at the end
    allocated_bytes: int  # all allocations of one run together
    allocations: int  # in one run

    def __str__(self) -> str:
        heights = (
            f"{format_bytes(self.peak_bytes)} of memory at its height, {format_bytes(self.left_bytes)} left at the end"
        )
        return f"{heights}, {self.allocations} allocations of {format_bytes(self.allocated_bytes)} together"


def memory_from_events(events: Iterable[Mapping[str, Any]], *, runs: int = 1, on_cuda: bool = False) -> MemoryUse:
    """Add up allocations and releases of `runs` equal runs, in the order of the timeline.

        >>> memory_from_events([{"Bytes": size, "Device Type": 0} for size in (8, 4, -8)])
        MemoryUse(peak_bytes=12, left_bytes=4, allocated_bytes=12, allocations=2)

    On CUDA only the memory of the device counts. Releases of memory that was allocated before the program began lower
    the level, and so do not count in the peak.
    """
    device = CUDA if on_cuda else CPU
    changes = [int(event["Bytes"]) for event in events if event["Device Type"] == device]
    level = peak = 0
    for change in changes:
        level += change
        peak = max(peak, level)
    allocations = [change for change in changes if change > 0]
    return MemoryUse(peak, level, sum(allocations) // runs, len(allocations) // runs)


@dataclass(frozen=True)
class OperatorUse:
    """Hold all calls of one operator, or all runs of one annotated range. Times and bytes are for one run."""

    name: str
    calls: float
    self_cpu_us: float  # excluding the operators that it calls
    total_cpu_us: float  # including the operators that it calls
    self_device_us: float  # of the kernels on the device that it launched itself
    self_memory_bytes: float  # allocated minus freed, without the operators that it calls
    is_range: bool  # made by `annotate`


@dataclass(frozen=True)
class OperatorProfile:
    """Hold the results of torch.profiler."""

    operators: tuple[OperatorUse, ...]  # sorted by their own CPU time, largest first
    memory: MemoryUse
    runs: int
    trace: str = field(repr=False)  # the timeline, as JSON for chrome://tracing and ui.perfetto.dev
    kernels: tuple[OperatorUse, ...] = ()  # of the device, by name; the time of each is also that of its operator

    @property
    def kernels_us(self) -> float:
        """Return the time of all kernels in one run."""
        return sum(kernel.self_device_us for kernel in self.kernels)

    def table(self, *, order: str = "self_cpu_us", limit: int = 20) -> str:
        """Return the operators as a table of text, the largest first.

        `order` is the name of a field of `OperatorUse`. Raises `ProfilingError` for another.
        """
        left_out = f"\n… and {len(self.operators) - limit} more" if len(self.operators) > limit else ""
        return f"{self._table(order, limit)}{left_out}"

    def write_trace(self, path: str | Path) -> Path:
        """Write the timeline into a file that chrome://tracing and ui.perfetto.dev open, and return where it lies."""
        path = Path(path)
        path.write_text(self.trace, encoding="utf-8")
        return path

    def _table(self, order: str = "self_cpu_us", limit: int = 20) -> Table:
        if order not in ORDERS:
            raise ProfilingError(f"OperatorProfile.table got order={order!r}; it knows {', '.join(map(repr, ORDERS))}.")
        ranked = sorted(self.operators, key=lambda use: getattr(use, order), reverse=order != "name")
        total_us = sum(use.self_cpu_us for use in self.operators) or 1.0
        rows = tuple(_row(use, total_us) for use in ranked[:limit])
        return Table(COLUMNS, rows, numbers=COLUMNS[1:], rule="line")

    def __str__(self) -> str:
        return f"{self.table()}\n{self.memory}"

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return f"{self._table()._repr_html_()}<p>{html.escape(str(self.memory))}</p>"


def profile_operators(
    fn: Callable[..., object], *args: object, runs: int = 3, warmup_runs: int = 1, shapes: bool = False
) -> OperatorProfile:
    """Run `fn(*args)` under torch.profiler and return its operators, its memory and its timeline.

        >>> profile = profile_operators(lambda x: torch.relu(x @ x), torch.ones(8, 8))
        >>> sorted(use.name for use in profile.operators if use.name in ("aten::mm", "aten::relu"))
        ['aten::mm', 'aten::relu']

    Numbers are for one run, the mean of `runs`; profiling slows each operator down by some microseconds, so take
    times from `course_lib.timing` and shares from here. Kernels on CUDA are included where CUDA is in use (not yet
    run there). With `shapes`, the timeline says the shape of every operand. Stacks are never recorded: in torch 2.13
    they crash the summary in a quarter of runs.

    Raises `ProfilingError` for impossible numbers of runs. Exceptions of `fn` propagate.
    """
    if not callable(fn):
        raise ProfilingError(f"profile_operators got a {type(fn).__name__}; it expects a callable, then its arguments.")
    if runs < 1 or warmup_runs < 0:
        raise ProfilingError(
            f"profile_operators got runs={runs}, warmup_runs={warmup_runs}; it expects 1 and 0 at least."
        )
    for _ in range(warmup_runs):
        fn(*args)
    on_cuda = torch.cuda.is_initialized()
    activities = [ProfilerActivity.CPU, *([ProfilerActivity.CUDA] if on_cuda else [])]
    profiler = torch.profiler.profile(activities=activities, record_shapes=shapes, profile_memory=True)
    with _without_start_messages(on_cuda), profiler:
        for _ in range(runs):
            fn(*args)
        if on_cuda:
            torch.cuda.synchronize()
    trace = _trace(profiler)
    operators, kernels = _uses(profiler.key_averages(), runs)
    changes = _memory_events(trace)
    # A process may use CUDA while this program does not.
    used_cuda = any(event["Device Type"] == CUDA for event in changes)
    memory = memory_from_events(changes, runs=runs, on_cuda=used_cuda)
    return OperatorProfile(operators, memory, runs, trace, kernels)


@contextmanager
def _without_start_messages(on_cuda: bool) -> Iterator[None]:
    """Prevent start and stop messages of the profiler on stderr, which a notebook would show as errors.

    The profiler reads the variable at its first use in a process. On CUDA, messages may say why kernels are missing.
    """
    if on_cuda or LOG_LEVEL in os.environ:
        yield
        return
    os.environ[LOG_LEVEL] = NO_MESSAGES
    try:
        yield
    finally:
        del os.environ[LOG_LEVEL]


def _uses(averages: Iterable[Any], runs: int) -> tuple[tuple[OperatorUse, ...], tuple[OperatorUse, ...]]:
    """Return operators and ranges, and apart from them kernels.

    The profiler lists the time of a kernel twice, for the kernel and for the operator that launched it, and each range
    once more for the device.
    """
    of_host = [event for event in averages if event.device_type.name == "CPU"]
    of_device = [event for event in averages if event.device_type.name != "CPU"]
    operators = sorted((_use(event, runs) for event in of_host), key=lambda use: -use.self_cpu_us)
    kernels = (_use(event, runs) for event in of_device if not event.is_user_annotation)
    return tuple(operators), tuple(sorted(kernels, key=lambda use: -use.self_device_us))


def _use(event: Any, runs: int) -> OperatorUse:
    return OperatorUse(
        name=event.key,
        calls=event.count / runs,
        self_cpu_us=event.self_cpu_time_total / runs,
        total_cpu_us=event.cpu_time_total / runs,
        self_device_us=event.self_device_time_total / runs,
        self_memory_bytes=(event.self_cpu_memory_usage + event.self_device_memory_usage) / runs,
        is_range=bool(event.is_user_annotation),
    )


def _trace(profiler: torch.profiler.profile) -> str:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "trace.json"
        profiler.export_chrome_trace(str(path))  # the profiler itself can write it only once
        return path.read_text(encoding="utf-8")


def _memory_events(trace: str) -> list[Mapping[str, Any]]:
    events = [event for event in json.loads(trace)["traceEvents"] if event.get("name") == "[memory]"]
    return [event["args"] for event in sorted(events, key=lambda event: float(event["ts"]))]


def _row(use: OperatorUse, total_us: float) -> tuple[str, ...]:
    return (
        f"[{use.name}]" if use.is_range else use.name,
        f"{use.calls:g}",
        format_us(use.self_cpu_us),
        f"{use.self_cpu_us / total_us:.1%}",
        format_us(use.total_cpu_us),
        format_us(use.self_device_us) if use.self_device_us else "",
        format_count(use.self_memory_bytes) if use.self_memory_bytes else "",
    )


@contextmanager
def annotate(name: str) -> Iterator[None]:
    """Name the code inside the block in torch.profiler and, where CUDA is in use, as an NVTX range for Nsight Systems.

        >>> with annotate("attention"):
        ...     with annotate("softmax"):
        ...         row = torch.zeros(3).softmax(0)
        >>> @annotate("step")
        ... def step(x):
        ...     return x + 1
        >>> step(1)
        2

    Ranges nest, and also end when an exception is raised. Without CUDA, NVTX is not used. The NVTX part is not yet run
    on CUDA. Raises `ProfilingError` for a name that is no text.
    """
    if not isinstance(name, str) or not name:
        raise ProfilingError(f"annotate got {name!r}; it expects a name, such as 'attention'.")
    # Read once: if CUDA is initialised inside the block, no range was begun, so none may end.
    marks = torch.cuda.nvtx if torch.cuda.is_initialized() else None
    with torch.profiler.record_function(name):
        if marks is None:
            yield
            return
        marks.range_push(name)
        try:
            yield
        finally:
            marks.range_pop()


@dataclass(frozen=True)
class Flops:
    """Hold multiplications and additions, each counted as one operation."""

    total: int
    by_operator: Mapping[str, int] = field(default_factory=dict)


def count_flops(fn: Callable[..., object], *args: object) -> Flops:
    """Run `fn(*args)` once and return the floating-point operations of its matrix products, convolutions and attention.

        >>> count_flops(lambda a, b: torch.relu(a @ b), torch.zeros(2, 3), torch.zeros(3, 4)).total  # 2 · 2 · 3 · 4
        48

    Other operators count as 0, as usual, since memory traffic limits them. The formulas are those of
    `torch.utils.flop_counter`. In torch 2.13 it counts attention on the CPU as 0, which is corrected here. It also
    does not know the fused kernel that `torch.nn.TransformerEncoderLayer` uses in evaluation, so that kernel is
    disabled during the count. Custom fused operators count as 0.
    """
    counter = FlopCounterMode(display=False, custom_mapping=dict(attention_on_cpu()))
    with torch.no_grad(), _layer_by_layer(), counter:
        fn(*args)
    counts = counter.get_flop_counts().get("Global", {})
    return Flops(counter.get_total_flops(), {str(operator): int(count) for operator, count in counts.items()})


@contextmanager
def _layer_by_layer() -> Iterator[None]:
    """Prevent `torch.nn.MultiheadAttention` and `TransformerEncoderLayer` from calling one fused kernel."""
    was_enabled = torch.backends.mha.get_fastpath_enabled()
    torch.backends.mha.set_fastpath_enabled(False)
    try:
        yield
    finally:
        torch.backends.mha.set_fastpath_enabled(was_enabled)
