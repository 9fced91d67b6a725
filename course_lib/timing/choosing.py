"""Which clock measures a call, from what was asked for and from where its tensors lie."""

import sys
from collections.abc import Iterable

from course_lib.errors import TimingError
from course_lib.timing.clocks import Clock, WallClock
from course_lib.timing.timings import Cache, ClockName


def open_clock(device: str | None, clock: str, cache: str, arguments: Iterable[object] = ()) -> Clock:
    """Return the clock that was asked for; "auto" takes events and a cold cache on CUDA, wall clock on the CPU.

    Without a device, it is the one where the tensors among `arguments` lie, and otherwise CUDA if this process uses it.
    Raises `TimingError` for what does not exist or cannot be had together.
    """
    where = device or _device_of(arguments)
    names = ["auto", *ClockName] if where.startswith("cuda") else ["auto", ClockName.WALL]
    caches = ["auto", *Cache] if where.startswith("cuda") and clock != ClockName.CUDA_GRAPH else ["auto", Cache.WARM]
    if where.partition(":")[0] not in ("cpu", "cuda"):
        raise TimingError(f"The timer got device={where!r}; it measures on 'cpu' and 'cuda'.")
    _check("clock", clock, names, where)
    _check("cache", cache, caches, f"{where} with this clock")
    if where.startswith("cpu"):
        return WallClock()
    from course_lib.timing.cuda_clocks import cuda_clock  # loads torch, which timing on the CPU does without

    return cuda_clock(
        where,
        ClockName.CUDA_EVENT if clock == "auto" else ClockName(clock),
        Cache.COLD if cache == "auto" else Cache(cache),
    )


def _check(what: str, given: str, known: list[str], where: str) -> None:
    if given not in known:
        listed = ", ".join(repr(str(name)) for name in known)
        raise TimingError(f"The timer got {what}={given!r}; on {where} it knows {listed}.")


def _device_of(arguments: Iterable[object]) -> str:
    torch = sys.modules.get("torch")  # whoever uses tensors has loaded it
    if torch is None:
        return "cpu"
    for argument in arguments:
        if isinstance(argument, torch.Tensor):
            return str(argument.device)
    return "cuda" if torch.cuda.is_initialized() else "cpu"
