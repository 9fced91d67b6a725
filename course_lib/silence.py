"""Keep or drop what a program and PyTorch print, warn of and log, by thread.

The redirections of `contextlib` and `warnings` are of the whole process: of two threads that redirect at once, the last
one to end restores what the other had set, for good. Here streams are replaced as long as any thread asks for it, and
each thread has its own.
"""

import io
import logging
import sys
import threading
import warnings
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any, TypeVar

Part = TypeVar("Part")


class _Asked(threading.local):
    """Where the output of one thread goes; the last of each list counts."""

    def __init__(self) -> None:
        self.stdout: list[io.StringIO] = []
        self.stderr: list[io.StringIO] = []
        self.warned: list[list[warnings.WarningMessage]] = []


_asked = _Asked()


class _Replaced:
    """A part of the process that is replaced as long as any thread needs it."""

    def __init__(self, replace: Callable[[], Callable[[], None]]) -> None:
        """Take a function that replaces the part, and returns how to restore it."""
        self._replace, self._restore = replace, lambda: None
        self._lock, self._users = threading.Lock(), 0

    def __enter__(self) -> None:
        with self._lock:
            if not self._users:
                self._restore = self._replace()
            self._users += 1

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self._users -= 1
            if not self._users:
                self._restore()


class _ByThread:
    """A stream that is the one that the calling thread has asked for, or else the one it replaces."""

    def __init__(self, name: str) -> None:
        self._name, self._replaced = name, getattr(sys, name)

    def __getattr__(self, attribute: str) -> Any:
        asked = getattr(_asked, self._name)
        return getattr(asked[-1] if asked else self._replaced, attribute)

    def restore(self) -> None:
        """Put back the stream that this one replaces, unless somebody has put another one there."""
        if getattr(sys, self._name) is self:
            setattr(sys, self._name, self._replaced)


def _replace_stream(name: str) -> Callable[[], None]:
    stream = _ByThread(name)
    setattr(sys, name, stream)
    return stream.restore


def _replace_warnings() -> Callable[[], None]:
    """Let each warning reach the thread that causes it."""
    whole = ExitStack()
    whole.enter_context(warnings.catch_warnings())
    warnings.simplefilter("always")
    shown = warnings.showwarning

    def show(message: Any, category: Any, filename: str, lineno: int, file: Any = None, line: Any = None) -> None:
        if _asked.warned:
            _asked.warned[-1].append(warnings.WarningMessage(message, category, filename, lineno, file, line))
        else:
            shown(message, category, filename, lineno, file, line)

    warnings.showwarning = show
    return whole.close


def _disable_logs() -> Callable[[], None]:
    level = logging.root.manager.disable
    logging.disable(logging.CRITICAL)
    return lambda: logging.disable(level)


def _disable_tracebacks() -> Callable[[], None]:
    log = logging.getLogger("torch._subclasses.fake_tensor")
    before, log.disabled = log.disabled, True
    return lambda: setattr(log, "disabled", before)


_STDOUT, _STDERR = _Replaced(lambda: _replace_stream("stdout")), _Replaced(lambda: _replace_stream("stderr"))
_WARNINGS, _LOGS = _Replaced(_replace_warnings), _Replaced(_disable_logs)
_TRACEBACKS = _Replaced(_disable_tracebacks)


@contextmanager
def kept_output() -> Iterator[io.StringIO]:
    """Give a stream that keeps what this thread prints, and print nothing of it."""
    with _STDOUT, _pushed(_asked.stdout, io.StringIO()) as kept:
        yield kept


@contextmanager
def kept_warnings() -> Iterator[list[warnings.WarningMessage]]:
    """Give a list of all warnings of this thread, and show none of them."""
    with _WARNINGS, _pushed(_asked.warned, list[warnings.WarningMessage]()) as kept:
        yield kept


@contextmanager
def no_logs() -> Iterator[None]:
    """Drop what is logged in this process, such as the traceback that PyTorch logs before it raises an error."""
    with _LOGS:
        yield


@contextmanager
def no_tracebacks() -> Iterator[None]:
    """Drop the traceback that PyTorch logs before an operator fails on fake tensors; the error itself tells it."""
    with _TRACEBACKS:
        yield


@contextmanager
def silence() -> Iterator[None]:
    """Drop what this thread prints and warns of, and what is logged."""
    with no_logs(), kept_output(), kept_warnings(), _STDERR, _pushed(_asked.stderr, io.StringIO()):
        yield


@contextmanager
def _pushed(asked: list[Part], one: Part) -> Iterator[Part]:
    asked.append(one)
    try:
        yield one
    finally:
        asked.pop()
