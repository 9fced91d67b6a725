"""Define the clocks for CUDA, which are tested with substitutes that record the calls to the device.

A sample by events has these steps: replace what the L2 cache holds, launch a kernel that only waits (the blocker),
record an event, run the calls, and record a second event. Behind the blocker, the host queues everything before the
first call begins. Each sample is also taken by wall clock, without blocker, from an idle device to an idle device.
This is the time that a caller waits, including launches.

This module alone uses `torch.cuda._sleep`, which is private: a kernel that spins for a number of clock cycles.
"""

import time
import warnings
from collections.abc import Callable
from typing import Any

import torch

from course_lib.errors import TimingError
from course_lib.timing.clocks import Cache, Call, Clock, ClockName, Reading

# The blocker lasts 1.5 times as long as the host just took to queue the same calls, plus 0.1 ms. It lasts at most
# 20 ms, since a longer one does not help a call that waits for the device itself. Device clocks are assumed to be
# 2 GHz or slower.
BLOCKER_SHARE, BLOCKER_LEAST_US, BLOCKER_MOST_US = 1.5, 100.0, 20_000.0
CYCLES_PER_US = 2_000
SMALLEST_FLUSH_BYTES = 64 << 20
MOST_GRAPHS = 2  # of the two sides of a comparison
DEVICE_COUNTS_MS = 1e3  # events count milliseconds, we count microseconds


def read_all(buffer: Any) -> None:
    """Read a buffer, so that the L2 cache holds nothing else, and nothing that has yet to be written back.

    After a write, the cache is full of changed lines. They are written back while the next kernel runs, which costs a
    kernel that moves 200 MB about a fifth of its speed.
    """
    buffer.sum()


def write_all(buffer: Any) -> None:
    """Write a buffer; `benchmarks/gpu` shows how much slower a copy is after it."""
    buffer.zero_()


class CudaWallClock:
    """Measure by wall clock from an idle device to an idle device."""

    name = ClockName.WALL

    def __init__(
        self,
        device: torch.device,
        *,
        cold: bool,
        cuda: Any = torch.cuda,
        empty: Any = torch.empty,
        flush: Callable[[Any], object] = read_all,
    ) -> None:
        self._cuda = cuda
        self._flush_by = flush
        self._device = device
        self._now_ns: Callable[[], int] = time.perf_counter_ns
        self._queuing_us = 0.0  # what the host took to queue the calls of the last sample
        self.device = f"{device} {cuda.get_device_name(device)}"
        self.cache = Cache.COLD if cold else Cache.WARM
        self._flush_buffer = empty(flush_bytes(cuda, device), dtype=torch.int8, device=device) if cold else None

    def now_us(self) -> float:
        """Wait until the device is idle, on all streams, and return the time."""
        self._cuda.synchronize(self._device)
        return self._now_ns() / 1e3

    def read(self, call: Call, calls: int) -> Reading:
        """Run the calls, and measure how long other streams still work after their stream."""
        own_stream_done = self._cuda.Event()
        self._flush()
        start_us = self.now_us()
        for _ in range(calls):
            call()
        self._queuing_us = self._now_ns() / 1e3 - start_us
        own_stream_done.record()
        own_stream_done.synchronize()
        done_us = self._now_ns() / 1e3
        end_us = self.now_us()
        return Reading(end_us - start_us, end_us - start_us, end_us - done_us)

    def _flush(self) -> None:
        if self._flush_buffer is not None:
            self._flush_by(self._flush_buffer)


class CudaEventClock(CudaWallClock):
    """Measure by two events around the calls, behind a blocker.

    Work on other streams does not lie between the events; `late_us` of the reading shows it.
    """

    name = ClockName.CUDA_EVENT

    def read(self, call: Call, calls: int) -> Reading:
        """Take one sample by events, and one by wall clock."""
        beside = super().read(call, calls)
        self._flush()
        time_us = self._between_events(call, calls)
        return Reading(time_us, beside.wall_us, beside.late_us)

    def _between_events(self, call: Call, calls: int) -> float:
        start, end = self._cuda.Event(enable_timing=True), self._cuda.Event(enable_timing=True)
        self._cuda._sleep(blocker_cycles(self._queuing_us))
        start.record()
        for _ in range(calls):
            call()
        end.record()
        self._cuda.synchronize(self._device)  # or the next sample may begin before this one ended
        return start.elapsed_time(end) * DEVICE_COUNTS_MS


class CudaGraphClock(CudaEventClock):
    """Measure by two events around a CUDA graph that holds all calls of a sample.

    For callables that take less time than their launch. Only the first call of a sample has a cold cache, so it is
    reported as warm. The callable must be one that CUDA can capture: fixed shapes, no synchronisation, no new memory.
    """

    name = ClockName.CUDA_GRAPH

    def __init__(self, device: torch.device, *, cuda: Any = torch.cuda, empty: Any = torch.empty) -> None:
        super().__init__(device, cold=False, cuda=cuda, empty=empty)
        self._graphs: dict[tuple[Call, int], Any] = {}

    def _between_events(self, call: Call, calls: int) -> float:
        if (call, calls) not in self._graphs:
            while len(self._graphs) >= MOST_GRAPHS:  # each keeps memory of its own
                del self._graphs[next(iter(self._graphs))]
            self._graphs[call, calls] = self._captured(call, calls)
        return super()._between_events(self._graphs[call, calls].replay, 1)

    def _captured(self, call: Call, calls: int) -> Any:
        graph = self._cuda.CUDAGraph()
        self._cuda.synchronize(self._device)
        with warnings.catch_warnings(), self._cuda.graph(graph):
            warnings.filterwarnings("ignore", "The CUDA Graph is empty")  # an empty call is measured on purpose
            for _ in range(calls):
                call()
        return graph


def blocker_cycles(queuing_us: float) -> int:
    """Return the number of clock cycles that the device has to wait while the host queues everything.

    >>> blocker_cycles(0.0), blocker_cycles(1_000.0), blocker_cycles(1e9)
    (200000, 3200000, 40000000)
    """
    return int(min(BLOCKER_SHARE * queuing_us + BLOCKER_LEAST_US, BLOCKER_MOST_US) * CYCLES_PER_US)


def flush_bytes(cuda: Any, device: torch.device) -> int:
    """Return how many bytes to read so that nothing else remains in the L2 cache."""
    return max(2 * int(cuda.get_device_properties(device).L2_cache_size), SMALLEST_FLUSH_BYTES)


def cuda_clock(device: str, name: ClockName, cache: Cache) -> Clock:
    """Return a clock for the current CUDA device."""
    target, current = torch.device(device), torch.cuda.current_device()
    if target.index not in (None, current):
        raise TimingError(
            f"The timer got device={device!r} while cuda:{current} is the current device, where events lie; "
            f"call torch.cuda.set_device({target.index}) first."
        )
    target = torch.device("cuda", current)
    if name is ClockName.CUDA_GRAPH:
        return CudaGraphClock(target)
    kind = CudaEventClock if name is ClockName.CUDA_EVENT else CudaWallClock
    return kind(target, cold=cache is Cache.COLD)


def device_sleep(cycles: int) -> None:
    """Launch a kernel on the current stream that does nothing for so many clock cycles."""
    torch.cuda._sleep(cycles)
