"""Dynamo without its timing of guards: a capture in a worker does not wait for it.

After each capture Dynamo times the guards once, and empties the processor's cache before, which can take longer than
the capture of a small function. The number goes into a log that nobody reads here. Read in torch 2.13.
"""

from typing import Any


def leave_guards_untimed() -> None:
    """Have Dynamo note a latency of zero for all guards, for the rest of this worker's life."""
    from torch._dynamo import guards

    guards.profile_guard_manager = _untimed


def _untimed(*_: Any) -> float:
    return 0.0
