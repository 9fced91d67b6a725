"""Hear from an operator what it launches, where it launches something else than one kernel for its operands.

An operator of several kernels, or one that reads only a part of its operands, notes its launches while it runs.
`course_lib.graph.cost` charges these in place of the operator.
"""

import contextlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass


@dataclass(frozen=True)
class Launch:
    """One launch: a name, and the different bytes of each tensor that it read and wrote."""

    name: str
    bytes_read: int
    bytes_written: int


_LISTENERS: list[list[Launch]] = []


@contextlib.contextmanager
def noted_launches() -> Iterator[list[Launch]]:
    """Yield a list that gets the launches noted inside of the block; of nested blocks, the innermost gets them.

    >>> with noted_launches() as heard:
    ...     note_launches([Launch("sum", 24, 12)])
    >>> heard
    [Launch(name='sum', bytes_read=24, bytes_written=12)]
    """
    heard: list[Launch] = []
    _LISTENERS.append(heard)
    try:
        yield heard
    finally:
        _LISTENERS.pop()


def note_launches(launches: Iterable[Launch]) -> None:
    """Tell the innermost `noted_launches`, if there is one; `launches` is not even read otherwise.

    >>> note_launches([Launch("sum", 24, 12)])
    """
    if _LISTENERS:
        _LISTENERS[-1].extend(launches)
