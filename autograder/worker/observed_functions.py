"""Observe the functions that run, and note what would end the observation, or run where it does not see.

That is another profiler, a thread, a process, or a search for the observer among all objects.
"""

import _posixsubprocess
import _thread
import contextlib
import sys
import threading
from collections.abc import Callable, Iterator
from types import FrameType
from typing import Any

import torch

from autograder.worker.garbage import kept_while_tracing

Look = Callable[[FrameType, str, Any], object]
_HUB: Any = torch.hub  # `torch.fx` takes its progress bars from here
THREAD = "a thread"
UNSEEN = {
    "sys.setprofile": "sys.setprofile",
    "os.fork": "os.fork",
    "os.forkpty": "os.forkpty",
    "os.posix_spawn": "another process",
    "os.system": "another process",
    "subprocess.Popen": "another process",
}
"""Audit events after which functions may run unobserved, each with what the answer used."""
UNAUDITED: tuple[tuple[Any, str, str], ...] = (
    (_thread, "start_new_thread", THREAD),
    (threading, "_start_new_thread", THREAD),
    (_posixsubprocess, "fork_exec", "another process"),
    (sys, "getprofile", "sys.getprofile"),
)
"""Functions without an audit event, after which functions may run unobserved."""
LOOKS = ("gc.get_objects", "gc.get_referrers")
"""Audit events of whoever looks for the observer; PyTorch captures with them, too."""

_GETPROFILE = sys.getprofile
evaded: list[str] = []
"""What the answer used since this was cleared that keeps functions from being observed."""
lasting: list[str] = []
"""What of this goes on after a request, since the answer was loaded: threads and processes."""
_own_threads: list[None] = []  # one for each thread that the worker may still start
_observing: list[bool] = []  # True while the answer runs, and empty at all other times
_looks: list[Look] = []  # those of the blocks that are open, the outermost first


@contextlib.contextmanager
def observed(look: Look, *, trusted: str) -> Iterator[None]:
    """Call `look` for each function that begins in the block, and note what evades it.

    In a block within a block, both look.

    Files whose path begins with `trusted` may start threads, as PyTorch's compiler does; none may where it is empty.
    """
    # or the first run of `torch.fx.Interpreter` starts a thread that watches progress bars
    _HUB.tqdm.monitor_interval = 0
    before, outer = _GETPROFILE(), [*_observing]
    _observing.clear()
    _looks.append(look)
    with kept_while_tracing():
        sys.setprofile(look if len(_looks) == 1 else _together([*_looks]))
        _observing.append(True)
        try:
            with _noted_calls(trusted):
                yield
        finally:
            _observing.clear()
            sys.setprofile(before)
            _looks.pop()
            _observing.extend(outer)


def _together(looks: list[Look]) -> Look:
    def look(frame: FrameType, event: str, called: Any) -> None:
        for each in looks:
            each(frame, event, called)

    return look


@contextlib.contextmanager
def own_threads(count: int) -> Iterator[None]:
    """Let the worker start so many threads in the block, which are not the answer's."""
    _own_threads[:] = [None] * count
    try:
        yield
    finally:
        _own_threads.clear()


@contextlib.contextmanager
def _noted_calls(trusted: str) -> Iterator[None]:
    """Note in `evaded` what of `UNAUDITED` is called, however it is called, but not by files below `trusted`."""
    originals = [getattr(owner, name) for owner, name, _ in UNAUDITED]
    for (owner, name, told), original in zip(UNAUDITED, originals, strict=True):
        setattr(owner, name, _noting(original, told, trusted))
    try:
        yield
    finally:
        for (owner, name, _), original in zip(UNAUDITED, originals, strict=True):
            setattr(owner, name, original)


def _noting(original: Callable[..., Any], told: str, trusted: str) -> Callable[..., Any]:
    def noted(*args: Any, **kwargs: Any) -> Any:
        if told == THREAD and _own_threads:
            _own_threads.pop()
        elif not trusted or not _caller(sys._getframe(1)).startswith(trusted):
            _note(told)
        return original(*args, **kwargs)

    return noted


def _caller(frame: FrameType) -> str:
    """Return the file that starts a thread, from the frame of the call."""
    while frame.f_code.co_filename == threading.__file__ and frame.f_back:
        frame = frame.f_back
    return exact(frame.f_code.co_filename)


def exact(text: Any) -> str:
    """Return an exact `str`, so that no method of a derived class runs where functions are not observed."""
    return str.__str__(text) if isinstance(text, str) else ""


def _note(told: str) -> None:
    evaded.append(told)
    if told not in (*LOOKS, "sys.setprofile", "sys.getprofile"):
        lasting.append(told)


def _audit(event: str, _: tuple[object, ...]) -> None:
    if _observing and event in UNSEEN:
        _note(UNSEEN[event])
    if _observing and event in LOOKS:
        _note(event)


sys.addaudithook(_audit)  # nothing can remove it again
