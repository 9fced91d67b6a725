"""A session: one answer, loaded in a worker, called as often as the checks ask.

The worker is started when first needed, and again when it has died, as long as the exercise's time lasts. Every way
in which a call can end badly leaves here as `AnswerFailedError`, which says whose checks it costs. Whoever waits here
for a worker lets other threads compute; that wait is not the answer's time.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

import torch

from autograder.host import shared_inputs
from autograder.host.channel import AnswerRaisedError, Channel, MalformedAnswerError, WorkerGoneError
from autograder.host.compute_lock import compute_lock
from autograder.host.records import ExerciseStatus
from autograder.host.sandbox import Ending, Limits, Sandbox, WorkerProcess
from autograder.protocol import Kind, Message, ProtocolError, RawTensor

START_ALLOWANCE_S = 60.0  # importing torch on a cold, loaded machine; not the answer's time
MAX_STARTS = 4
Seen = TypeVar("Seen")
TENSORS_ONLY = {"value", "callable", "module"}
"""Modes in which an answer needs no more than torch, unless its set-up says so."""
DISK_FULL = ("[Errno 28]", "[Errno 27]")  # no space left on device, file too large
WORKERS_OWN = {
    "NoEntryPointError",
    "NotATensorError",
    "NotPlainDataError",
    "NotAGraphError",
    "NotScriptableError",
    "NotAModuleError",
    "NotOneGraphError",
    "NotScheduledError",
    "ScheduleError",
    "GraphError",
}
"""Exceptions whose message is a sentence for the student already."""


class AnswerFailedError(Exception):
    """A call gave no result.

    ``status`` says how it ended, ``fatal`` that no further call can do better, ``unanswered`` that nothing was tried.
    """

    def __init__(self, status: ExerciseStatus, message: str, *, fatal: bool, unanswered: bool = False) -> None:
        super().__init__(message)
        self.status, self.message, self.fatal, self.unanswered = status, message, fatal, unanswered


class SandboxFailedError(Exception):
    """A worker did not even start: our failure, never the student's."""


@dataclass
class Session:
    """Requests to the worker that holds one answer.

    ``load`` and ``load_tensors`` are what a fresh worker is given first.
    """

    sandbox: Sandbox
    load: dict[str, Any]
    load_tensors: Sequence[RawTensor] = ()
    masked: Sequence[str] = ()
    wall_s: float = 60.0
    _process: WorkerProcess | None = field(default=None, repr=False)
    _channel: Channel | None = field(default=None, repr=False)
    _deadline_s: float = field(default=0.0, repr=False)
    _left_s: float = field(default=-1.0, repr=False)
    _starts: int = field(default=0, repr=False)

    def call(self, body: dict[str, Any], inputs: Sequence[torch.Tensor] = ()) -> tuple[Message, list[int]]:
        """Send ``inputs`` in shared memory; returns the reply and the numbers of inputs that were written to."""
        memory = shared_inputs.Arena(inputs)
        try:
            reply = self._request(
                Kind.CALL, body, memory.raw, shared_bytes=memory.first_bytes, fds=(memory.fd,) if inputs else ()
            )
            return reply, memory.mutated()
        finally:
            memory.close()

    def call_with(self, body: dict[str, Any], tensors: Sequence[RawTensor]) -> Message:
        """Send ``tensors`` inside the message; for graphs, whose tensors are parameters and not inputs."""
        return self._request(Kind.CALL, body, tensors)

    def timed_call(
        self,
        body: dict[str, Any],
        tensors: Sequence[RawTensor],
        *,
        shared_bytes: Sequence[int],
        fds: tuple[int, ...],
        deliver: Callable[[], None],
        look: Callable[[], Seen],
    ) -> tuple[Message, Seen, int]:
        """Call under the host's clock; see `Channel.timed_call`."""
        channel = self._channel or self._start()
        started_s = time.monotonic()
        try:
            with self._outcomes(), compute_lock.released():
                return channel.timed_call(
                    body,
                    tensors,
                    shared_bytes=shared_bytes,
                    fds=fds,
                    deadline_s=started_s + self._left_s,
                    deliver=deliver,
                    look=look,
                )
        finally:
            self._left_s -= time.monotonic() - started_s

    def send_shared(
        self, body: dict[str, Any], tensors: Sequence[RawTensor], shared_bytes: Sequence[int], fds: tuple[int, ...]
    ) -> Message:
        """Send a call whose tensors lie in memory that stays the host's."""
        return self._request(Kind.CALL, body, tensors, shared_bytes=shared_bytes, fds=fds)

    def reload(self, load: dict[str, Any], tensors: Sequence[RawTensor]) -> None:
        """Load something else into the same worker; only for what the host made itself."""
        self.load, self.load_tensors = load, tensors
        if self._channel is not None:
            self.sandbox.expect(*_work(load))  # this worker has started, the next one like it is to start quicker
            self._request(Kind.LOAD, load, tensors)

    def close(self) -> None:
        """End the worker; bytes that it sent unasked turn up here."""
        if self._process is None:
            return
        process, channel, self._process, self._channel = self._process, self._channel, None, None
        with compute_lock.released():
            try:
                if channel is not None:
                    with contextlib.suppress(WorkerGoneError):
                        channel.expect_silence()
            except MalformedAnswerError as error:
                raise AnswerFailedError(ExerciseStatus.MALFORMED_ANSWER, str(error), fatal=True) from None
            finally:
                process.end()

    def _request(self, kind: Kind, body: dict[str, Any], tensors: Sequence[RawTensor], **extra: Any) -> Message:
        channel = self._channel or self._start()
        started_s = time.monotonic()
        try:
            with self._outcomes(), compute_lock.released():
                return channel.request(kind, body, tensors, deadline_s=started_s + self._left_s, **extra)
        finally:
            self._left_s -= time.monotonic() - started_s

    def _start(self) -> Channel:
        with compute_lock.released():
            return self._started()

    def _started(self) -> Channel:
        if not self._starts:
            self._left_s = self.wall_s
        elif self._left_s <= 0:  # a graph that used up the time must not get it anew for the next check
            message = f"No time is left of the {self.wall_s:g} s allowed for this exercise."
            raise AnswerFailedError(ExerciseStatus.TIMED_OUT, message, fatal=True)
        self._starts += 1
        if self._starts > MAX_STARTS:
            message = f"The answer ended its own process in each of {MAX_STARTS} starts."
            raise AnswerFailedError(ExerciseStatus.KILLED, message, fatal=True)
        self.sandbox.expect(*_work(self.load))
        limits = Limits(wall_s=START_ALLOWANCE_S + self.wall_s)
        self._process = self.sandbox.start(limits=limits, masked=self.masked)
        channel = Channel(self._process.socket)
        try:
            ready = channel.wait_ready(time.monotonic() + START_ALLOWANCE_S)
        except (WorkerGoneError, TimeoutError, MalformedAnswerError):
            ending = self._process.end()
            self._process = None
            raise SandboxFailedError(
                f"The worker did not start: {ending.output.strip()[-400:] or ending.reason}"
            ) from None
        if self.sandbox.has_cuda and ready.body.get("cuda") is not True:  # said before a student's byte is there
            self._drop()
            raise SandboxFailedError("A worker does not see the GPU that was assigned to it.")
        self._channel = channel
        try:
            self._request(Kind.LOAD, self.load, self.load_tensors)
        except AnswerFailedError as error:  # what does not load now will not load later
            if self._process is not None:
                self._drop()
            raise AnswerFailedError(error.status, error.message, fatal=True, unanswered=error.unanswered) from None
        return channel

    @property
    def worker_pid(self) -> int:
        """The worker's process, started if there is none; 0 where the system does not tell."""
        return (self._channel or self._start()).worker_pid

    @contextlib.contextmanager
    def _outcomes(self) -> Iterator[None]:
        """Translate what a request can end in, and drop a worker that is of no more use."""
        try:
            yield
        except AnswerRaisedError as error:
            raise _raised(error) from None
        except (MalformedAnswerError, ProtocolError) as error:
            self._drop()
            raise AnswerFailedError(ExerciseStatus.MALFORMED_ANSWER, str(error), fatal=True) from None
        except TimeoutError:
            self._drop()
            message = f"The answer took longer than the {self.wall_s:g} s allowed for this exercise."
            raise AnswerFailedError(ExerciseStatus.TIMED_OUT, message, fatal=True) from None
        except WorkerGoneError:
            raise _gone(self._drop()) from None

    def _drop(self) -> Ending:
        assert self._process is not None, "a request has a worker"
        process, self._process, self._channel = self._process, None, None
        return process.end()


def _work(load: dict[str, Any]) -> tuple[str, ...]:
    """What will be needed besides torch; asked of what the host wrote alone, so that no answer can change a zygote."""
    if load.get("mode") == "lowered":
        return "graphs", "lowering"
    ours = (part["text"] for part in load.get("parts", ()) if part["name"] == "setup")
    concerns_graphs = load.get("mode") not in TENSORS_ONLY or any("course_lib" in text for text in ours)
    return ("graphs",) if concerns_graphs else ()


def _raised(error: AnswerRaisedError) -> AnswerFailedError:
    if error.type == "NotImplementedError":
        return AnswerFailedError(ExerciseStatus.STUDENT_ERROR, "Not answered yet.", fatal=False, unanswered=True)
    if error.type == "MemoryError" or "can't allocate memory" in error.message:
        message = "The answer asked for more memory than allowed."
        return AnswerFailedError(ExerciseStatus.OUT_OF_MEMORY, message, fatal=False)
    where = f" in line {error.line} of {error.part.strip('<>')} (`{error.text}`)" if error.line else ""
    hint = ""
    if error.type == "NameError":
        hint = (
            " Only the set-up cell and the answer cell are graded, after the answers that the exercise names, if any: "
            "what else the answer needs must be in the answer cell."
        )
    elif error.type == "OSError" and error.message.startswith(DISK_FULL):
        each, all_ = Limits().file_bytes >> 20, Limits().tmp_bytes >> 20
        hint = f" A file may have {each} MB, and all files together {all_} MB: write less."
    if error.type in WORKERS_OWN and not error.line:
        return AnswerFailedError(ExerciseStatus.STUDENT_ERROR, error.message, fatal=False)
    return AnswerFailedError(
        ExerciseStatus.STUDENT_ERROR, f"{error.type}: {error.message.rstrip('.')}{where}.{hint}", fatal=False
    )


def _gone(ending: Ending) -> AnswerFailedError:
    if ending.reason == "out_of_memory":
        return AnswerFailedError(ExerciseStatus.OUT_OF_MEMORY, "The answer used more memory than allowed.", fatal=True)
    if ending.reason == "timed_out":
        return AnswerFailedError(ExerciseStatus.TIMED_OUT, "The answer took longer than allowed.", fatal=True)
    if ending.exit_code is None:
        message = f"The answer was stopped. {ending.detail}".strip()
        return AnswerFailedError(ExerciseStatus.KILLED, message, fatal=True)
    end = f"exit status {ending.exit_code}" if ending.exit_code >= 0 else f"signal {-ending.exit_code}"
    message = f"The answer ended its own process ({end}) instead of returning a result."
    return AnswerFailedError(ExerciseStatus.KILLED, message, fatal=False)
