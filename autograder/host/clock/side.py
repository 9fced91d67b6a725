"""Time one worker by the host's clock: send inputs and signal, wait for the reply, read some output bytes, stop.

    start ─ inputs and signal ─ the worker computes ─ reply ─ read random places ─ stop ─ copy all outputs

The worker reports no part of the time: neither the start, nor the end, nor the number of calls. An answer that
replies first and writes later is detected: the places read before the stop differ from the copy, or both are wrong.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import torch

from autograder.host.clock.memory import HostMemory, Memory, Parcel, Problem
from autograder.host.records import ExerciseStatus
from autograder.host.session import AnswerFailedError, Session
from autograder.protocol.requests.answers import InputForm
from autograder.protocol.requests.loads import Cost, CountGraph
from autograder.protocol.requests.timed_rounds import CaptureRound, FetchOutputs, HoldInputs, LendOutputs, RunRound

EMPTY_ROUNDS = 9
REPLAYS = 8
"""Replays in a round on a GPU, so that a round is long beside the change to the worker's context. On an H200, a round
with one empty kernel took 0.37 to 0.45 ms, and one without any 0.14 to 0.22 ms."""
LEAST_LEFT = 0.25  # at least this part of a round's time counts, however long an empty round took


@dataclass(frozen=True)
class Window:
    """One timed round: its time by the host's clock, and the outputs when the clock stopped."""

    time_us: float
    outputs: tuple[Problem, ...]  # one a problem
    wrote_late: bool  # the outputs changed after the reply
    wrote_inputs: bool  # an input differs from the host's private copy


@dataclass
class Side:
    """One worker under the clock.

    `forms` are tensors with the shapes and dtypes of one problem's outputs. `into` says that the function writes into
    outputs, which follow its inputs. In a strict round, inputs come with the signal, and outputs lie in the host's
    memory before the clock stops. A contest with student code is strict on both sides. `is_clean` says that no student
    code is in this worker, and `is_baseline` that the host wrote the graph in it, so its inputs need no comparison.
    In a round, a CUDA graph of all calls is replayed `replays` times: its time is that of the kernels, without the
    launches. With 0 the function is called. `most_replays` is 1 for a student's kernels: replays have the same inputs
    and outputs, so a kernel could see that its output is there already. It is 0 where a student's function is called.
    """

    session: Session
    forms: Sequence[torch.Tensor]
    into: bool = False
    is_strict: bool = False
    is_clean: bool = True
    is_baseline: bool = False
    memory: Callable[[Sequence[torch.Tensor]], Memory] = HostMemory
    most_replays: int = REPLAYS
    replays: int = 0
    _memory: Memory | None = field(default=None, repr=False)
    _count: int = field(default=0, repr=False)

    def open(self, count: int) -> None:
        """Give the worker memory for `count` problems a round, and let it capture the round if rounds are replayed.

        Nothing changes if that is open already: what a worker maps on a GPU stays mapped until the worker ends.
        """
        if self._memory is not None and self._count == count:
            return
        self.close_memory()
        self._memory, self._count = self.memory([f for _ in range(count) for f in self.forms]), count
        lent = self._memory.lent()
        request = LendOutputs(len(self.forms), lent.block)
        self.session.send_shared(request, lent.tensors, lent.first_bytes, lent.fds)
        if self.replays and not self._captured():
            message = f"A round of {count} calls cannot be captured on this GPU, where one of a single call can."
            raise AnswerFailedError(ExerciseStatus.STUDENT_ERROR, message, fatal=True)

    def can_replay(self) -> bool:
        """Tell whether the worker can replay its rounds: on a GPU, what it computes never waits for the device.

        A capture that fails leaves its stream and its random numbers in disorder, so that worker ends, and the next
        request starts a new one.
        """
        self.open(1)
        if self._memory is None or not self._memory.on_gpu:
            return False
        captured = self._captured()
        if not captured:
            self.close()
        return captured

    def _captured(self) -> bool:
        return self.session.call_with(CaptureRound(self._count), ()).body.replays

    def window(
        self,
        problems: Sequence[Problem],
        *,
        skip: bool = False,
        bare: bool = False,
        draws: int | None = None,
        once: bool = False,
    ) -> Window:
        """Run one round; with `skip` the worker calls nothing, with `bare` it copies no outputs either.

        With `once` a captured round is replayed once only.
        With `draws`, dropout masks follow from this seed, which takes other operators: the time means nothing.
        """
        assert self._memory is not None, "open comes first"
        assert len(problems) == self._count, "a round has as many problems as memory was lent for"
        parcel = self._memory.parcel(problems)
        deliver = self.is_strict and not bare
        replays = self.replays if not skip and draws is None else 0
        replays = min(replays, 1) if once else replays
        request = RunRound(len(problems), into=self.into, skip=skip, deliver=deliver, replays=replays, draws=draws)
        if not self.is_strict:
            self._memory.deliver()
            self.session.send_shared(HoldInputs(), parcel.tensors, parcel.first_bytes, parcel.fds)
            parcel = Parcel()
        _, seen, time_ns = self.session.timed_call(
            request,
            parcel.tensors,
            shared_bytes=parcel.first_bytes,
            fds=parcel.fds,
            deliver=self._memory.deliver if self.is_strict else _nothing,
            look=self._memory.look if self.is_strict else _nothing,
        )
        if not self.is_strict:
            self.session.call_with(FetchOutputs(), ())
        outputs, again = self._memory.snapshot()
        each = len(self.forms)
        portions = tuple(tuple(outputs[i : i + each]) for i in range(0, len(outputs), each))
        late = seen is not None and not torch.equal(seen, again)
        return Window(time_ns / 1e3, portions, late, not self.is_baseline and self._memory.mutated())

    def empty_us(self, problems: Sequence[Problem], *, bare: bool = False) -> float:
        """Return the shortest time of a round that computes nothing: messages and, if strict, transfer of tensors.

        Call this only for a worker without student code, which would gain by being slow here.
        """
        return min(self.window(problems, skip=True, bare=bare).time_us for _ in range(EMPTY_ROUNDS))

    def cost(self, inputs: Sequence[InputForm]) -> Cost | None:
        """Return the counted cost of one problem, or None if this worker can no longer count."""
        try:
            return self.session.call_with(CountGraph(tuple(inputs)), ()).body
        except AnswerFailedError:  # a count only explains the ratio, so its failure costs nothing
            return None

    def close_memory(self) -> None:
        """Free the memory."""
        if self._memory is not None:
            self._memory.close()
            self._memory = None

    def close(self) -> None:
        """End the worker, and free the memory."""
        self.close_memory()
        self.session.close()


def net_us(time_us: float, empty_us: float) -> float:
    """Return the time of a round without the cost of an empty one.

    >>> net_us(2_500.0, 500.0), net_us(600.0, 500.0)
    (2000.0, 150.0)
    """
    return max(time_us - empty_us, LEAST_LEFT * time_us)


def problems_for(window_us: float, one_us: float, most: int) -> int:
    """Return how many problems fill a window of `window_us` if one takes `one_us`: at least one, at most `most`."""
    return min(max(math.ceil(window_us / one_us), 1), most)


def _nothing() -> None:
    pass
