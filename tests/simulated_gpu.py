"""A GPU that can be wrong on purpose: times are simulated, results are real tensors in this process's memory.

A worker's operations are queued, as on CUDA: its Python continues at once, and memory changes when the simulated time
has come. Until then a result holds NaN. The host has a context of its own, which waits for no work of a worker, and
changing from one context to another takes time. An operator of this course takes longer to launch than one of PyTorch,
unless a captured graph launches it. The simulated clock of the GPU is low until it has worked for a while. Processes
that used the GPU are listed for a while after their end.
"""

import contextlib
import dataclasses
import functools
import heapq
import itertools
import os
import random
from collections.abc import Callable, Iterator, Sequence
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch.autograd.profiler_util import EventList, FunctionEvent
from torch.utils._python_dispatch import TorchDispatchMode, _disable_current_modes

from autograder.host.clock import contest as contests
from autograder.host.records import ExerciseStatus
from autograder.host.session import AnswerFailedError
from autograder.protocol.requests.loads import LoadGraph
from autograder.protocol.requests.timed_rounds import RunRound
from autograder.worker import shared_memory
from autograder.worker.clean_worker import load_graph
from autograder.worker.rounds import Rounds
from course_lib.timing.environment import Environment, environment, lasting_problems, parse_gpu

CPU, CUDA = torch.autograd.DeviceType.CPU, torch.autograd.DeviceType.CUDA
IDLE_MHZ, FULL_MHZ = 345.0, 1980.0
WAKING_US = 200_000.0  # of work, until the clock is high
LAUNCH_US, MESSAGE_US, LISTING_US = 2.0, 20.0, 100_000.0
LAUNCH_BY_PYTHON_US = 30.0  # of an operator of this course
CHANGE_US = 200.0  # until the GPU works for another process than before
COPY_SHARE = 0.1  # of a kernel's time: operations that only move data
LISTED_US = 1_000_000.0  # for which a process that has ended is still listed
HOST_PID, HOST_PID_OUTSIDE = 500, 91_500  # of the host, in its own namespace and in that of the machine
COPIES = ("aten::copy_", "aten::clone", "aten::neg", "aten::_to_copy", "aten::zero_", "aten::fill_", "aten::zeros_like")


@dataclasses.dataclass
class Block:
    """A block of the GPU's memory; the descriptor stands for it in a message."""

    bytes: torch.Tensor
    closed: bool = False

    def descriptor(self) -> int:
        """Return a new descriptor."""
        return os.memfd_create("stands for a block")

    def close(self) -> None:
        """Free the block."""
        self.closed = True


class SimulatedGpu:
    """One GPU and its time; as an object it is the GPU that the host sees."""

    tensors = "cpu"

    def __init__(self, kernel_us: float = 600.0, *, awake: bool = True, in_container: bool = False) -> None:
        self.kernel_us, self.now_us = kernel_us, 0.0
        self.in_container = in_container
        self.blocks: list[Block] = []
        self.ended_us: dict[int, float] = {}  # when listed processes ended
        self.works_for: Context | None = None  # None for the host
        self.neighbours: list[int] = []
        self._worked_us = 2 * WAKING_US if awake else 0.0
        self._busy_until_us = self.now_us + WAKING_US if awake else 0.0
        self._queue: list[tuple[float, int, Callable[[], object]]] = []
        self._count = itertools.count()
        self._noise = random.Random(0)

    @property
    def clock_mhz(self) -> float:
        """Return the clock now: high while the GPU works, once it has worked long enough."""
        awake = self._worked_us >= WAKING_US and self.now_us <= self._busy_until_us
        return FULL_MHZ if awake else IDLE_MHZ

    def queue(self, begin_us: float, work_us: float, work: Callable[[], object]) -> float:
        """Queue work that begins no earlier than `begin_us`; return when it ends."""
        lasting_us = work_us * (FULL_MHZ / self.clock_mhz if self._worked_us < WAKING_US else 1.0)
        lasting_us *= self._noise.lognormvariate(0.0, 0.005)
        end_us = max(begin_us, self.now_us) + lasting_us
        heapq.heappush(self._queue, (end_us, next(self._count), work))
        self._worked_us += lasting_us
        self._busy_until_us = max(self._busy_until_us, end_us)
        return end_us

    def advance_to(self, time_us: float) -> None:
        """Let the time pass, and finish all work that ends by then, in this order."""
        while self._queue and self._queue[0][0] <= time_us:
            self.now_us, _, work = heapq.heappop(self._queue)
            with _disable_current_modes(), torch._C._AutoDispatchBelowAutograd():  # a kernel knows no graph of autograd
                work()
        self.now_us = max(self.now_us, time_us)

    def advance(self, passing_us: float) -> None:
        """Let that much time pass."""
        self.advance_to(self.now_us + passing_us)

    # What the host asks of a GPU.

    def made(self, size_bytes: int) -> tuple[Block, torch.Tensor]:
        """Allocate a block."""
        self.blocks.append(Block(torch.zeros(size_bytes, dtype=torch.uint8)))
        return self.blocks[-1], self.blocks[-1].bytes

    def synchronize(self) -> None:
        """Return at once: the host's own work is done when it is asked for."""

    def free_bytes(self) -> int:
        """Return how much memory is free."""
        return 64 << 20

    def stay_busy(self) -> None:
        """Queue half a second of work."""
        self.queue(self._busy_until_us, 500_000.0, lambda: None)

    def read(self) -> Environment:
        """Return what `nvidia-smi` shows now; asking it takes time."""
        self.advance(LISTING_US)
        host = HOST_PID_OUTSIDE if self.in_container else HOST_PID
        listed = [pid for pid, ended_us in self.ended_us.items() if self.now_us < ended_us + LISTED_US]
        processes = "\n".join(map(str, [*self.neighbours, *listed, host]))
        fields = f"NVIDIA Simulated, 580.1, {self.clock_mhz:.0f}, {FULL_MHZ:.0f}, 40, 100"
        gpu = parse_gpu(fields, processes, HOST_PID, in_container=self.in_container)
        return dataclasses.replace(environment(), gpu=gpu)

    def now_s(self) -> float:
        """Return the time in seconds."""
        return self.now_us / 1e6


class Context(TorchDispatchMode):
    """A worker's context: while it is entered, operations on tensors are queued on the current stream."""

    def __init__(self, gpu: SimulatedGpu) -> None:
        super().__init__()
        self.gpu = gpu
        self.stream = "default"
        self._busy_us: dict[str, float] = {}
        self._captured: list[tuple[str, float, Callable[[], object]]] | None = None  # while a graph is captured

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        name = func._schema.name
        if func.is_view or name.startswith("aten::empty") or name == "aten::detach":
            return func(*args, **kwargs)
        work_us = self.gpu.kernel_us * (COPY_SHARE if name in COPIES else 1.0)
        launch_us = LAUNCH_BY_PYTHON_US if name.startswith("course_lib::") else LAUNCH_US
        if any(each.alias_info is not None and each.alias_info.is_write for each in func._schema.arguments):
            work_us *= min(args[0].numel(), 2) - 1  # one element takes no time
            self._launch(work_us, lambda: func(*args, **kwargs))
            return args[0]
        formed = func(*args, **kwargs)
        if not isinstance(formed, torch.Tensor):  # a value for Python, which waits for the device
            self.synchronize()
            return func(*args, **kwargs)
        formed.fill_(float("nan") if formed.is_floating_point() else 1)
        self._launch(work_us, lambda: formed.copy_(func(*args, **kwargs)), launch_us)
        return formed

    def _launch(self, work_us: float, work: Callable[[], object], launch_us: float = LAUNCH_US) -> None:
        if self._captured is not None:
            self._captured.append((self.stream, work_us, work))
            return
        self.gpu.advance(launch_us)
        self._queue(self.stream, work_us, work)

    def _queue(self, stream: str, work_us: float, work: Callable[[], object]) -> None:
        if self.gpu.works_for is not self:
            self.gpu.works_for, work_us = self, work_us + CHANGE_US
        self._busy_us[stream] = self.gpu.queue(self._busy_us.get(stream, 0.0), work_us, work)

    @contextlib.contextmanager
    def on(self, stream: str) -> Iterator[None]:
        """Launch on another stream, which waits for nothing."""
        before, self.stream = self.stream, stream
        yield
        self.stream = before

    def wait_for(self, stream: str) -> None:
        """Let the current stream wait for another."""
        both = self._busy_us.get(self.stream, 0.0), self._busy_us.get(stream, 0.0)
        self._busy_us[self.stream] = max(both)

    def later(self, delay_us: float, work: Callable[[], object]) -> None:
        """Let a thread write later; no wait for the device includes it."""
        self.gpu.queue(self.gpu.now_us + delay_us, 0.0, work)

    # What a worker asks of a GPU.

    def mapped(self, descriptor: int, size_bytes: int) -> torch.Tensor:
        """Map the block that was made last."""
        return self.gpu.blocks[-1].bytes[:size_bytes]

    def synchronize(self) -> None:
        """Wait for all streams."""
        if self._captured is not None:
            raise RuntimeError("operation not permitted when stream is capturing")
        self.gpu.advance_to(max(self._busy_us.values(), default=0.0))

    def captured(self, work: Callable[[], Any]) -> Callable[[], Any] | None:
        """Note the kernels of `work`, which a replay launches at once."""
        kernels = self._captured = []
        try:
            results = work()
        except RuntimeError:
            return None
        finally:
            self._captured = None

        def replay() -> Any:
            self.gpu.advance(LAUNCH_US)
            for kernel in kernels:
                self._queue(*kernel)
            return results

        return replay


class SimulatedSession:
    """A session with a worker in this process, under the simulated time; `function` replaces a student's answer."""

    worker_pid = -1
    _numbers = itertools.count(700)

    def __init__(self, gpu: SimulatedGpu, load: Any, tensors: Sequence[Any] = (), *, answer: Any = None) -> None:
        self.gpu, self.context, self.pid = gpu, Context(gpu), next(self._numbers)
        self.left: int | None = None  # requests until the worker dies
        if isinstance(load, LoadGraph):
            self._handlers = load_graph(load, tuple(tensors))
        else:
            self._handlers = Rounds(answer(self.context)).handlers()
        rounds: Rounds = self._handlers[RunRound].__self__  # type: ignore[attr-defined]
        rounds.gpu = self.context

    def send_shared(self, request: Any, tensors: Any, shared_bytes: Any, fds: tuple[int, ...]) -> Any:
        """Serve a request."""
        shared_memory.of_device.extend(map(os.dup, fds))
        return self._serve(request)

    def call_with(self, request: Any, tensors: Any) -> Any:
        """Serve a request."""
        return self._serve(request)

    def timed_call(self, request: Any, tensors: Any, *, shared_bytes: Any, fds: Any, deliver: Any, look: Any) -> Any:
        """Serve a request under the simulated clock."""
        start_us = self.gpu.now_us
        deliver()
        reply = self._serve(request)
        seen = look()
        return reply, seen, round((self.gpu.now_us - start_us) * 1e3)

    def close(self) -> None:
        """End the worker, which is listed for a while."""
        self.gpu.ended_us.setdefault(self.pid, self.gpu.now_us)

    def _serve(self, request: Any) -> Any:
        self.gpu.advance(MESSAGE_US)
        self.gpu.works_for = None  # the host has used it since the last request
        if self.left is not None:
            self.left -= 1
            if self.left < 0:
                self.close()
                raise AnswerFailedError(ExerciseStatus.KILLED, "The answer ended its own process.", fatal=True)
        with self.context:
            reply = self._handlers[type(request)](request, ())
        self.gpu.advance(MESSAGE_US)
        return reply


def put_in_place(gpu: SimulatedGpu, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let contests start their workers on the simulated GPU, and ask it for its faults."""

    def session(sandbox: Any, load: Any, tensors: Sequence[Any] = (), **how: Any) -> SimulatedSession:
        return SimulatedSession(gpu, load, tensors)

    monkeypatch.setattr(contests, "Session", session)
    told = {"read": gpu.read, "now_s": gpu.now_s}
    monkeypatch.setattr(contests, "lasting_problems", functools.partial(lasting_problems, **told))


def lying_events(gpu: SimulatedGpu, context: Context, factor: float) -> Any:
    """Return what the clock by events asks of `torch.cuda`; the times between two events are wrong by `factor`."""

    class Event:
        def __init__(self, enable_timing: bool = False) -> None:
            self.at_us = 0.0

        def record(self) -> None:
            self.at_us = max(gpu.now_us, context._busy_us.get(context.stream, 0.0))

        def synchronize(self) -> None:
            gpu.advance_to(self.at_us)

        def elapsed_time(self, end: "Event") -> float:
            return factor * (end.at_us - self.at_us) / 1e3

    return SimpleNamespace(
        Event=Event,
        synchronize=lambda device: context.synchronize(),
        get_device_name=lambda device: "Simulated",
        _sleep=lambda cycles: context._launch(cycles / FULL_MHZ, lambda: None),
    )


class SimulatedDriver:
    """The CUDA driver, as forks see it: if a process was asked for GPUs, its forks are told that there are none."""

    def __init__(self) -> None:
        self.asked_in: list[int] = []

    def count(self) -> int:
        """Return the number of GPUs, which initialises the driver in this process."""
        self.asked_in.append(os.getpid())
        return int(self.asked_in[0] == os.getpid())


KERNEL_US = 100.0


def profiled_on_cuda() -> EventList:
    """Return what torch's profiler lists of an operator, its kernel, and a range around both, each in its own row."""

    def row(name: str, device: Any, **more: Any) -> FunctionEvent:
        end_us = 2 * KERNEL_US if device is CPU else KERNEL_US
        return FunctionEvent(1, name, 1, 0, end_us, device_type=device, use_device="cuda", stack=(), **more)

    operator = row("aten::tanh", CPU)
    operator.append_kernel("tanh_kernel", 0, KERNEL_US)
    ranges = [row("part", device, is_user_annotation=True) for device in (CPU, CUDA)]
    events = EventList([operator, row("tanh_kernel", CUDA), *ranges], use_device="cuda")
    events._build_tree()
    return events
