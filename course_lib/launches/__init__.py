"""Capture launches and replay them: what a device's graphs do, simulated on CPU tensors."""

from course_lib.launches.device_timeline import Timeline, eager_timeline, replay_timeline
from course_lib.launches.launch_record import Launch, recording
from course_lib.launches.replayed_graph import (
    ColdStartError,
    Graph,
    GraphStateError,
    HostReadError,
    RandomStateError,
    is_capturing,
    warm_up,
)
from course_lib.launches.silent_errors import SilentError, silent_errors

__all__ = [
    "ColdStartError",
    "Graph",
    "GraphStateError",
    "HostReadError",
    "Launch",
    "RandomStateError",
    "SilentError",
    "Timeline",
    "eager_timeline",
    "is_capturing",
    "recording",
    "replay_timeline",
    "silent_errors",
    "warm_up",
]
