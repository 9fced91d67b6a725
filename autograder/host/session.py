"""A session: one answer, loaded in a worker and called by the checks.

The worker is started for the first request, and again if it has died, until the exercise's time is used up. Every
failure of a call is raised as `AnswerFailedError`, or as `MalformedAnswerError` for a reply of another form. A thread
that waits here for a worker lets other threads compute; that wait does not count as the answer's time.
"""

import contextlib
import signal
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

import torch

from autograder.host import shared_inputs
from autograder.host.channel import AnswerRaisedError, Channel, MalformedAnswerError, WorkerGoneError
from autograder.host.compute_lock import compute_lock
from autograder.host.exception_advice import advice
from autograder.host.records import ExerciseStatus
from autograder.host.sandbox import Ending, Limits, Sandbox, WorkerProcess
from autograder.host.sandbox.resources.run_queue import waited_s
from autograder.protocol import FrameKind, Message, ProtocolError, RawTensor, Ready, Request, Result, serialise
from autograder.protocol.contract import read_reply, request_body
from autograder.protocol.decoder import decode
from autograder.protocol.requests.kernel_runs import LoadKernels
from autograder.protocol.requests.loads import Load, LoadAnswer, LoadLowering

START_ALLOWANCE_S = 60.0  # importing torch on a cold, loaded machine; not the answer's time
MAX_STARTS = 4
DISTURBED = 0.05  # of the allowed time: an answer that waited longer for a processor may need only a quieter machine
R = TypeVar("R")
Seen = TypeVar("Seen")
TENSORS_ONLY = {"value", "callable", "module"}
"""Kinds whose answers need only torch, unless their set-up imports more."""
DISK_FULL = ("[Errno 28]", "[Errno 27]")  # no space left on device, file too large


class AnswerFailedError(Exception):
    """A call gave no result.

    `status` says how the call ended, `fatal` that later calls would fail too, `unanswered` that the stub was called.
    """

    def __init__(self, status: ExerciseStatus, message: str, *, fatal: bool, unanswered: bool = False) -> None:
        super().__init__(message)
        self.status, self.message, self.fatal, self.unanswered = status, message, fatal, unanswered


class SandboxFailedError(Exception):
    """A worker did not start; this is a failure of the grader, never of the student."""


@dataclass
class Session:
    """Requests to the worker that holds one answer.

    A new worker first gets `load` and `load_tensors`, unless `load` is None. A reply whose form does not fit the
    request raises `MalformedAnswerError`.
    """

    sandbox: Sandbox
    load: Load | None
    load_tensors: Sequence[RawTensor] = ()
    masked: Sequence[str] = ()
    absent: Mapping[str, str] = field(default_factory=dict)  # names of the set-up cell that are masked here
    wall_s: float = 60.0
    stopped: ExerciseStatus | None = field(default=None, init=False)  # how a worker was stopped, if one was
    undisturbed: bool = field(default=False, init=False)  # timed out, though it had processors when it wanted them
    hear: Callable[..., None] | None = field(default=None, init=False)  # gets each request, its tensors and its reply
    _process: WorkerProcess | None = field(default=None, repr=False)
    _channel: Channel | None = field(default=None, repr=False)
    _left_s: float = field(default=-1.0, repr=False)
    _starts: int = field(default=0, repr=False)

    def call(self, request: Request[R], inputs: Sequence[torch.Tensor] = ()) -> tuple[Result[R], list[int]]:
        """Send `inputs` in shared memory; return the reply and the indices of inputs that were written to."""
        memory = shared_inputs.SharedInputs(inputs)
        try:
            reply = self.send_shared(request, memory.raw, memory.first_bytes, (memory.fd,) if inputs else ())
            return reply, memory.mutated()
        finally:
            memory.close()

    def call_with(self, request: Request[R], tensors: Sequence[RawTensor]) -> Result[R]:
        """Send `tensors` inside the message; for graphs, whose tensors are parameters and not inputs."""
        return self.send_shared(request, tensors, (), ())

    def send_shared(
        self, request: Request[R], tensors: Sequence[RawTensor], shared_bytes: Sequence[int], fds: tuple[int, ...]
    ) -> Result[R]:
        """Send a request whose tensors lie in memory that the host owns."""
        payload = serialise(request_body(request), tensors, shared_bytes)
        result: Result[R] | None = None
        try:
            with self._exchange() as (channel, deadline_s):
                reply = channel.request(FrameKind.CALL, payload, fds, deadline_s=deadline_s)
            result = result_of(request, reply)
            return result
        finally:
            if self.hear is not None:
                self.hear(request, tensors, result)

    def timed_call(
        self,
        request: Request[R],
        tensors: Sequence[RawTensor],
        *,
        shared_bytes: Sequence[int],
        fds: tuple[int, ...],
        deliver: Callable[[], None],
        look: Callable[[], Seen],
    ) -> tuple[Result[R], Seen, int]:
        """Call under the host's clock; see `Channel.timed_call`."""
        payload = serialise(request_body(request), tensors, shared_bytes)
        with self._exchange() as (channel, deadline_s):
            reply, seen, time_ns = channel.timed_call(payload, fds, deadline_s=deadline_s, deliver=deliver, look=look)
        return result_of(request, reply), seen, time_ns

    def reload(self, load: Load, tensors: Sequence[RawTensor]) -> None:
        """Load something else into the same worker; use this only for data that the host made."""
        self.load, self.load_tensors = load, tensors
        if self._channel is not None:
            self.sandbox.expect(*_work(load))  # makes the next worker of this type start faster
            self._load(load, tensors)

    def close(self) -> None:
        """End the worker; raises `AnswerFailedError` if it sent unrequested bytes."""
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

    def _load(self, load: Load, tensors: Sequence[RawTensor]) -> None:
        payload = serialise(request_body(load), tensors)
        with self._exchange() as (channel, deadline_s):
            reply = channel.request(FrameKind.LOAD, payload, deadline_s=deadline_s)
        result_of(load, reply)

    def _start(self) -> Channel:
        with compute_lock.released():
            return self._started()

    def _started(self) -> Channel:
        if not self._starts:
            self._left_s = self.wall_s
        elif self._left_s <= 0:  # a graph that used up the time gets no more for the next check
            self.stopped = ExerciseStatus.TIMED_OUT
            message = f"No time is left of the {self.wall_s:g} s allowed for this exercise."
            raise AnswerFailedError(ExerciseStatus.TIMED_OUT, message, fatal=True)
        self._starts += 1
        if self._starts > MAX_STARTS:
            message = f"The answer ended its own process in each of {MAX_STARTS} starts."
            raise AnswerFailedError(ExerciseStatus.KILLED, message, fatal=True)
        self.sandbox.expect(*_work(self.load), masked=self.masked)
        limits = Limits(wall_s=START_ALLOWANCE_S + self.wall_s)
        self._process = self.sandbox.start(limits=limits, masked=self.masked)
        channel = Channel(self._process.socket)
        try:
            ready = decode(channel.wait_ready(time.monotonic() + START_ALLOWANCE_S).body, Ready)
        except (WorkerGoneError, TimeoutError, MalformedAnswerError, ProtocolError):
            ending = self._process.end()
            self._process = None
            raise SandboxFailedError(
                f"The worker did not start: {ending.output.strip()[-400:] or ending.reason}"
            ) from None
        if self.sandbox.has_cuda and not ready.cuda:  # this reply comes before any student code is loaded
            self._drop()
            raise SandboxFailedError("A worker does not see the GPU that was assigned to it.")
        self._channel = channel
        try:
            if self.load is not None:
                self._load(self.load, self.load_tensors)
        except AnswerFailedError as error:  # loading it again would fail too
            if self._process is not None:
                self._drop()
            raise AnswerFailedError(error.status, error.message, fatal=True, unanswered=error.unanswered) from None
        return channel

    @property
    def worker_pid(self) -> int:
        """Return the process id of the worker, and start one if there is none; 0 if the id is unknown."""
        return (self._channel or self._start()).worker_pid

    @property
    def started_pid(self) -> int:
        """Return the process id of the worker if there is one, or 0."""
        return 0 if self._channel is None else self._channel.worker_pid

    @contextlib.contextmanager
    def _exchange(self) -> Iterator[tuple[Channel, float]]:
        """Yield the channel and the end of the answer's time; translate the exceptions of a request.

        A worker that cannot be used again is ended.
        """
        channel = self._channel or self._start()
        started_s = time.monotonic()
        try:
            with compute_lock.released():
                yield channel, started_s + self._left_s
        except AnswerRaisedError as error:
            raise _raised(error, self.absent) from None
        except (MalformedAnswerError, ProtocolError) as error:
            self._drop()
            raise AnswerFailedError(ExerciseStatus.MALFORMED_ANSWER, str(error), fatal=True) from None
        except TimeoutError:
            self.stopped = ExerciseStatus.TIMED_OUT
            self.undisturbed = waited_s(channel.worker_pid) < DISTURBED * self.wall_s
            self._drop()
            message = f"The answer took longer than the {self.wall_s:g} s allowed for this exercise."
            raise AnswerFailedError(ExerciseStatus.TIMED_OUT, message, fatal=True) from None
        except WorkerGoneError:
            ending = self._drop()
            gone = _gone(ending)
            if ending.exit_code in (None, -signal.SIGKILL):  # by the host or the kernel, as a rule
                self.stopped = gone.status
            raise gone from None
        finally:
            self._left_s -= time.monotonic() - started_s

    def _drop(self) -> Ending:
        assert self._process is not None, "a request has a worker"
        process, self._process, self._channel = self._process, None, None
        return process.end()


def result_of(request: Request[R], reply: Message) -> Result[R]:
    """Return the reply to `request` that a message holds; raises `MalformedAnswerError` for another form."""
    try:
        return read_reply(request, reply)
    except ProtocolError:  # its message names internal classes, which a student does not know
        raise MalformedAnswerError from None


def _work(load: Load | None) -> tuple[str, ...]:
    """Return the work for which the worker needs more than torch.

    It depends only on text of the host, so that no answer can change a zygote.
    """
    if isinstance(load, LoadLowering):
        return "graphs", "lowering"
    if isinstance(load, LoadKernels):
        return ()  # Triton is imported anew there, to interpret
    if not isinstance(load, LoadAnswer):
        return ("graphs",)
    ours = "".join(part.text for part in load.parts if part.name == "setup")
    work = ("graphs",) if load.kind not in TENSORS_ONLY or "course_lib" in ours else ()
    return (*work, "lightning") if "import lightning\n" in ours else work


def _raised(error: AnswerRaisedError, absent: Mapping[str, str]) -> AnswerFailedError:
    if error.type == "NotImplementedError" and (not error.line or error.text.lstrip().startswith("raise ")):
        return AnswerFailedError(ExerciseStatus.STUDENT_ERROR, "Not answered yet.", fatal=False, unanswered=True)
    if error.type == "MemoryError" or "can't allocate memory" in error.message:
        message = "The answer asked for more memory than allowed."
        return AnswerFailedError(ExerciseStatus.OUT_OF_MEMORY, message, fatal=False)
    where = f" in line {error.line} of {error.part.strip('<>')} (`{error.text}`)" if error.line else ""
    hint = f" {advice(error.type, error.message)}".rstrip() if error.line else ""
    if error.type == "NameError":
        hint = _missing_name(error.message, absent)
    elif error.type == "OSError" and error.message.startswith(DISK_FULL):
        each, all_ = Limits().file_bytes >> 20, Limits().tmp_bytes >> 20
        hint = f" A file may have {each} MB, and all files together {all_} MB: write less."
    if error.said_to_student and not error.line:
        return AnswerFailedError(ExerciseStatus.STUDENT_ERROR, error.message, fatal=False)
    return AnswerFailedError(
        ExerciseStatus.STUDENT_ERROR, f"{error.type}: {error.message.rstrip('.')}{where}.{hint}", fatal=False
    )


def _missing_name(message: str, absent: Mapping[str, str]) -> str:
    """Return a sentence that says why a name of the notebook is not there, and what to do."""
    quoted = message.split("'")
    package = absent.get(quoted[1]) if len(quoted) > 1 else None
    if package is not None:
        return f" The set-up cell imports it from `{package}`, which this exercise does not have: write it without."
    return (
        " Only the imports of the set-up cell and the answer cell are graded, after the answers that the exercise "
        "names, if any: what else the answer needs must be in the answer cell."
    )


def _gone(ending: Ending) -> AnswerFailedError:
    if ending.reason == "out_of_memory":
        return AnswerFailedError(ExerciseStatus.OUT_OF_MEMORY, "The answer used more memory than allowed.", fatal=True)
    if ending.reason == "timed_out":
        return AnswerFailedError(ExerciseStatus.TIMED_OUT, "The answer took longer than allowed.", fatal=True)
    if ending.exit_code is None:
        message = f"The answer was stopped. {ending.detail}".strip()
        return AnswerFailedError(ExerciseStatus.KILLED, message, fatal=True)
    if ending.exit_code == -signal.SIGKILL:
        message = "The process of the answer was killed (signal 9), as when a machine has no memory left."
        return AnswerFailedError(ExerciseStatus.KILLED, message, fatal=False)
    end = f"exit status {ending.exit_code}" if ending.exit_code >= 0 else f"signal {-ending.exit_code}"
    message = f"The answer ended its own process ({end}) instead of returning a result."
    return AnswerFailedError(ExerciseStatus.KILLED, message, fatal=False)


def another(session: Session) -> Session:
    """Return a session with a worker of its own for the same answer."""
    other = Session(session.sandbox, session.load, session.load_tensors, session.masked, session.absent, session.wall_s)
    other.hear = session.hear
    return other
