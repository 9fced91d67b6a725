"""What the clocks for CUDA ask of the device, and in which order, on a stand-in that writes it down."""

import contextlib
import warnings

import pytest
import torch

from course_lib.timing.clocks import Cache, ClockName
from course_lib.timing.cuda_clocks import (
    CudaEventClock,
    CudaGraphClock,
    CudaWallClock,
    flush_bytes,
    read_all,
    write_all,
)
from course_lib.timing.measurement import empty_call_us
from tests.course_lib.timing.fake_time import FakeTime

DEVICE = torch.device("cuda", 0)


class FakeCuda:
    """Writes down what is asked of it. Between two events lie as many milliseconds as calls."""

    def __init__(self, l2_bytes: int = 50 << 20) -> None:
        self.log: list[str] = []
        self.l2_bytes = l2_bytes

    def get_device_name(self, device):
        return "Stand-in"

    def get_device_properties(self, device):
        return type("Properties", (), {"L2_cache_size": self.l2_bytes})

    def synchronize(self, device):
        self.log.append("idle")

    def _sleep(self, cycles):
        self.log.append("blocker")
        self.blocker_cycles = cycles

    def Event(self, enable_timing=False):  # noqa: N802  # torch's name
        return FakeEvent(self, enable_timing)

    def CUDAGraph(self):  # noqa: N802  # torch's name
        return FakeGraph(self)

    @contextlib.contextmanager
    def graph(self, graph):
        before, self.log = self.log, graph.captured
        yield
        self.log = before

    def empty(self, size, dtype, device):
        return FakeBuffer(self, size)


class FakeEvent:
    def __init__(self, cuda: FakeCuda, timing: bool) -> None:
        self.cuda, self.timing, self.place = cuda, timing, 0

    def record(self):
        self.cuda.log.append("event" if self.timing else "mark")
        self.place = len(self.cuda.log)

    def synchronize(self):
        self.cuda.log.append("mark reached")

    def elapsed_time(self, other):
        return float(self.cuda.log[self.place : other.place].count("call"))


class FakeGraph:
    def __init__(self, cuda: FakeCuda) -> None:
        self.cuda, self.captured = cuda, []

    def replay(self):
        self.cuda.log += self.captured


class FakeBuffer:
    def __init__(self, cuda: FakeCuda, size: int) -> None:
        self.cuda, self.size = cuda, size

    def sum(self):
        self.cuda.log.append("flush")


def read(kind, calls: int, **options):
    """Return the log and the reading of one sample."""
    cuda = FakeCuda()
    clock = kind(DEVICE, cuda=cuda, empty=cuda.empty, **options)
    reading = clock.read(lambda: cuda.log.append("call"), calls)
    return cuda.log, reading, clock


WALL = ["idle", "call", "call", "mark", "mark reached", "idle"]


def test_the_wall_clock_runs_from_an_idle_device_to_an_idle_device():
    log, reading, clock = read(CudaWallClock, 2, cold=False)

    assert log == WALL
    assert reading.time_us == reading.wall_us > 0
    assert 0 <= reading.late_us <= reading.wall_us
    assert (clock.name, clock.cache, clock.device) == (ClockName.WALL, Cache.WARM, "cuda:0 Stand-in")


def test_a_sample_by_events_is_flush_blocker_event_calls_event_with_the_wall_clock_beside():
    log, reading, clock = read(CudaEventClock, 2, cold=True)

    assert log == ["flush", *WALL, "flush", "blocker", "event", "call", "call", "event", "idle"]
    assert reading.time_us == 2000.0  # events count milliseconds
    assert (clock.name, clock.cache) == (ClockName.CUDA_EVENT, Cache.COLD)


def test_a_warm_sample_is_not_flushed():
    log, _, clock = read(CudaEventClock, 1, cold=False)

    assert "flush" not in log
    assert clock.cache is Cache.WARM


def test_a_graph_is_captured_once_and_replayed_between_events():
    log, reading, clock = read(CudaGraphClock, 2)
    clock.read(call := (lambda: clock._cuda.log.append("call")), 2)
    del log[:]
    clock.read(call, 2)

    assert log == [*WALL, "blocker", "event", "call", "call", "event", "idle"]
    assert reading.time_us == 2000.0
    assert (clock.name, clock.cache) == (ClockName.CUDA_GRAPH, Cache.WARM)


def test_the_blocker_lasts_longer_than_the_host_takes_to_queue_the_calls():
    time, cuda = FakeTime(), FakeCuda()
    clock = CudaEventClock(DEVICE, cold=False, cuda=cuda, empty=cuda.empty)
    clock._now_ns = time.read_ns
    clock.read(time.work(100.0), 30)

    assert 3_000 < cuda.blocker_cycles / 2_000 < 6_000  # microseconds at 2 GHz, where queuing took 3,000


def test_a_compilation_in_the_first_call_does_not_stop_the_device_for_seconds():
    time, cuda = FakeTime(), FakeCuda()
    clock = CudaEventClock(DEVICE, cold=False, cuda=cuda, empty=cuda.empty)
    clock._now_ns = time.read_ns
    clock.read(time.work(10e6), 1)

    assert cuda.blocker_cycles / 2_000 == 20_000


@pytest.mark.parametrize(("l2_bytes", "expected"), [(50 << 20, 100 << 20), (4 << 20, 64 << 20)])
def test_the_flush_reads_more_than_the_cache_holds(l2_bytes, expected):
    assert flush_bytes(FakeCuda(l2_bytes), DEVICE) == expected


L2_BYTES, BYTES_PER_US = 50 << 20, 4_000_000


class CopyingGpu(FakeCuda):
    """A GPU whose L2 cache keeps what was written; a kernel waits until that is in memory."""

    def __init__(self) -> None:
        super().__init__(L2_BYTES)
        self.dirty_bytes = 0
        self.now_us = 0.0

    def Event(self, enable_timing=False):  # noqa: N802  # torch's name
        return CopyingEvent(self)

    def _sleep(self, cycles):
        pass

    def copy(self, size_bytes: int) -> None:
        """Read and write so many bytes; evict what was written before, and leave what fits of this."""
        self.now_us += (2 * size_bytes + self.dirty_bytes) / BYTES_PER_US
        self.dirty_bytes = 0  # a copy streams past the cache

    def empty(self, size, dtype, device):
        return CopyingBuffer(self, size)


class CopyingEvent:
    def __init__(self, cuda) -> None:
        self.cuda, self.at_us = cuda, 0.0

    def record(self):
        self.at_us = self.cuda.now_us

    def synchronize(self):
        pass

    def elapsed_time(self, end):
        return (end.at_us - self.at_us) / 1e3


class CopyingBuffer:
    def __init__(self, cuda, size: int) -> None:
        self.cuda, self.size = cuda, size

    def zero_(self):
        self.cuda.dirty_bytes = min(self.size, L2_BYTES)

    def sum(self):
        self.cuda.dirty_bytes = 0


@pytest.mark.parametrize(("flush", "slower"), [(read_all, 1.0), (write_all, 1.26)])
def test_a_flush_that_reads_leaves_nothing_to_write_back_in_the_timed_region(flush, slower):
    cuda = CopyingGpu()
    clock = CudaEventClock(DEVICE, cold=True, cuda=cuda, empty=cuda.empty, flush=flush)
    size_bytes = 100_000_000
    reading = clock.read(lambda: cuda.copy(size_bytes), 1)

    assert reading.time_us == pytest.approx(slower * 2 * size_bytes / BYTES_PER_US, rel=0.01)


def test_graphs_are_kept_for_two_callables_only_and_empty_calls_are_captured_once(recwarn):
    cuda = FakeCuda()
    cuda.captured = 0

    @contextlib.contextmanager
    def graph(graph):
        cuda.captured += 1
        yield
        warnings.warn("The CUDA Graph is empty. This usually means ...", stacklevel=2)

    cuda.graph = graph
    clock = CudaGraphClock(DEVICE, cuda=cuda, empty=cuda.empty)
    empty_call_us(clock)
    assert (cuda.captured, len(clock._graphs), list(recwarn)) == (1, 1, [])
    for _ in range(5):
        clock.read(lambda: None, 3)
    assert len(clock._graphs) == 2


def test_torch_has_what_the_clocks_are_written_for():
    missing = [
        name for name in ("_sleep", "Event", "CUDAGraph", "graph", "synchronize") if not hasattr(torch.cuda, name)
    ]

    assert missing == [], (
        f"torch {torch.__version__} lacks torch.cuda.{missing}: change course_lib/timing/cuda_clocks.py"
    )
