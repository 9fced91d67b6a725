"""The device that a timer measures on is that of the tensors that a program uses, whatever else the process does."""

import functools

import pytest
import torch
from torch.profiler import ProfilerActivity

from course_lib.profiling import profile_operators
from course_lib.profiling.operator_profile import CUDA
from course_lib.timing import compare, time_callable
from course_lib.timing.clocks import Cache, ClockName
from course_lib.timing.cuda_clocks import CudaEventClock, CudaWallClock
from course_lib.timing.measurement import open_clock
from course_lib.timing.reach import device_reached
from tests.course_lib.timing.test_cuda_clocks import FakeCuda

X = torch.ones(3)
MODEL = torch.nn.Linear(3, 2)


class OnGpu(torch.Tensor):
    """A tensor that says that it lies on a GPU."""

    device = torch.device("cuda", 0)


def through_a_global():
    return MODEL(X)


def through_another_function():
    return through_a_global()


def with_a_default(x=X):
    return x + 1


def made_with_a_closure():
    y = torch.ones(3)
    return lambda: y * 2


class Program:
    """A program with its tensors in a list."""

    def __init__(self) -> None:
        self.parts = {"weights": [torch.ones(2)]}

    def run(self):
        return self.parts


ON_THE_CPU = [
    lambda: X.relu(),
    through_a_global,
    through_another_function,
    with_a_default,
    made_with_a_closure(),
    functools.partial(torch.add, X),
    MODEL.forward,
    Program().run,
    lambda: [x + X for x in range(3)],
]


def use_cuda(monkeypatch) -> FakeCuda:
    """Let this process use a stand-in for CUDA, as after `doctor()`; return it."""
    cuda = FakeCuda()

    def cuda_clock(where, name, cache):
        kind = {ClockName.WALL: CudaWallClock, ClockName.CUDA_EVENT: CudaEventClock}[name]
        return kind(torch.device("cuda", 0), cold=cache is Cache.COLD, cuda=cuda, empty=cuda.empty)

    monkeypatch.setattr("course_lib.timing.cuda_clocks.cuda_clock", cuda_clock)
    monkeypatch.setattr(torch.cuda, "is_initialized", lambda: True)
    return cuda


@pytest.mark.parametrize("program", ON_THE_CPU)
def test_a_program_on_the_cpu_is_timed_on_the_cpu_although_the_process_uses_cuda(program, monkeypatch):
    use_cuda(monkeypatch)
    clock = open_clock(None, "auto", "auto", (program,))

    assert device_reached([program]) == "cpu"
    assert (clock.name, clock.cache, clock.device) == (ClockName.WALL, Cache.WARM, "cpu")


def test_one_tensor_on_a_gpu_decides():
    y = torch.ones(2).as_subclass(OnGpu)

    assert device_reached([lambda: X + y]) == "cuda:0"
    assert device_reached([X, y]) == "cuda:0"


def test_without_a_tensor_the_clock_is_right_for_both(monkeypatch):
    use_cuda(monkeypatch)
    unknown = open_clock(None, "auto", "auto", (lambda: sum(range(10)),))
    asked = open_clock("cuda", "auto", "auto", ())

    assert (unknown.name, unknown.cache, unknown.device) == (ClockName.WALL, Cache.WARM, "cuda:0 Stand-in")
    assert (asked.name, asked.cache) == (ClockName.CUDA_EVENT, Cache.COLD)


def test_a_program_that_moves_its_tensors_to_a_gpu_is_waited_for(monkeypatch):
    cuda = use_cuda(monkeypatch)
    open_clock(None, "auto", "auto", (lambda: X.cuda(),)).read(lambda: cuda.log.append("call"), 1)

    assert cuda.log == ["idle", "call", "mark", "mark reached", "idle"]


def test_time_and_ratio_of_a_program_on_the_cpu_hold_where_cuda_is_in_use(monkeypatch):
    use_cuda(monkeypatch)
    x = torch.ones(1000)

    timing = time_callable(lambda: x.exp(), max_samples=5, budget_s=0.05, warmup_s=0.0)
    assert (timing.device, timing.clock) == ("cpu", "wall")
    assert timing.median_us > 0
    compared = compare(lambda: x.exp(), lambda: x.exp().exp(), max_pairs=5, warmup_s=0.0)
    assert (compared.candidate.device, compared.candidate.clock) == ("cpu", "wall")


def test_memory_of_a_program_on_the_cpu_is_counted_where_cuda_is_in_use(monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_initialized", lambda: True)
    monkeypatch.setattr(torch.cuda, "synchronize", lambda: None)
    profile = torch.profiler.profile

    def without_cuda(activities, **options):
        return profile(activities=[ProfilerActivity.CPU], **options)

    monkeypatch.setattr(torch.profiler, "profile", without_cuda)

    assert profile_operators(lambda: torch.ones(1000) + 1, runs=1).memory.peak_bytes >= 8_000
    assert CUDA == 1  # the profiler's number for the memory of a GPU
