"""A price list that decides whether a part pays on a target: launches, bytes, and the handover."""

import math
from dataclasses import dataclass

from torch import fx

from course_lib.backends.aten import eager_cost
from course_lib.backends.target import Executable
from course_lib.errors import BackendError
from course_lib.fusion import Objection


@dataclass(frozen=True)
class Spent:
    """The cost of one run."""

    launches: int
    bytes_moved: int


@dataclass(frozen=True, kw_only=True)
class Prices:
    """Prices that decide which parts to keep. The defaults are round numbers, not those of any device.

    >>> Prices(launch_us=5, bandwidth_gb_s=1000).time_us(launches=2, bytes_moved=1_000_000)
    11.0
    """

    launch_us: float = 5.0
    bandwidth_gb_s: float = 1000.0
    handover_us: float = 2.0  # for leaving eager PyTorch and coming back, once a part

    def __post_init__(self) -> None:
        for name in ("launch_us", "bandwidth_gb_s", "handover_us"):
            value = getattr(self, name)
            if not isinstance(value, (int, float)) or not math.isfinite(value) or value < 0:
                raise BackendError(f"Prices got {name}={value!r}; expected a number that is not negative.")
        if self.bandwidth_gb_s == 0:
            raise BackendError("Prices got bandwidth_gb_s=0, with which nothing would ever arrive.")

    def time_us(self, *, launches: int, bytes_moved: int) -> float:
        """Return the time that launches and memory traffic take together."""
        return launches * self.launch_us + bytes_moved / (self.bandwidth_gb_s * 1e3)

    def objection(self, part: fx.GraphModule, executable: Executable) -> Objection | None:
        """Return why a part should be left to eager PyTorch, or None if the target is faster for it."""
        eager = eager_cost(part, [node.meta["val"] for node in part.graph.find_nodes(op="placeholder")])
        before = self.time_us(launches=eager.launches, bytes_moved=eager.bytes_moved)
        after = self.time_us(launches=executable.launches, bytes_moved=executable.bytes_moved) + self.handover_us
        if after < before:
            return None
        return Objection("too small", f"eager takes {before:.1f} µs for the part and the target {after:.1f} µs")

    def loss(self, before: Spent, after: Spent) -> Objection | None:
        """Return why a whole graph should be left to eager PyTorch, or None if lowering it costs no time."""
        old, new = (self.time_us(launches=spent.launches, bytes_moved=spent.bytes_moved) for spent in (before, after))
        if new <= old:
            return None
        return Objection("no gain", f"eager takes {old:.1f} µs for the whole graph, and with the target {new:.1f} µs")
