"""Draw when the host starts launches and when the device runs them, eagerly and replayed, from a simple model.

The host needs a fixed time a launch. The device runs one kernel after the other, each as long as its bytes take, and at
least a fixed time, however few they are.
"""

import base64
import html
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from course_lib.launches.launch_record import Launch

LEFT, WIDTH, ROW = 60, 560, 34
REPLAYED_GAP_US = 1.0  # between two kernels of a graph, as a round number; measure your own device


@dataclass(frozen=True)
class Span:
    """One launch or one kernel, from start to end."""

    name: str
    start_us: float
    end_us: float


@dataclass(frozen=True, repr=False)
class Timeline:
    """When the host and the device were busy; a picture in a notebook, sentences as text."""

    title: str
    host: tuple[Span, ...]
    device: tuple[Span, ...]
    scale_us: float = 0.0
    """The time at the right edge, so that two pictures can be compared; 0 takes this timeline's own end."""

    @property
    def total_us(self) -> float:
        """The time from the first launch to the end of the last kernel."""
        return max((span.end_us for span in (*self.host, *self.device)), default=0.0)

    @property
    def busy_us(self) -> float:
        """The time for which the device computes."""
        return sum(span.end_us - span.start_us for span in self.device)

    def __str__(self) -> str:
        share = self.busy_us / self.total_us if self.total_us else 0.0
        return (
            f"{self.title}: {len(self.host)} launches by the host, {len(self.device)} kernels, {self.total_us:.1f} µs "
            f"in all; the device computes for {self.busy_us:.1f} µs, {share:.0%} of the time."
        )

    __repr__ = __str__

    def _repr_html_(self) -> str:
        label = html.escape(str(self), quote=True)
        source = base64.b64encode(self._svg(label).encode()).decode()
        return f'<img alt="{label}" style="max-width: 100%" src="data:image/svg+xml;base64,{source}"/>'

    def _svg(self, label: str) -> str:
        width, height = LEFT + WIDTH + 10, 2 * ROW + 36
        rows = self._row("host", self.host, 22, "#fbdcb8") + self._row("device", self.device, 22 + ROW, "#cfe3f7")
        return (
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" role="img" '
            f'aria-label="{label}" font-family="sans-serif" font-size="11"><rect width="100%" height="100%" '
            f'fill="white"/><text x="2" y="12" font-weight="bold">{html.escape(self.title)}</text>{rows}'
            f'<text x="{LEFT}" y="{height - 4}">0</text><text x="{width - 10}" y="{height - 4}" '
            f'text-anchor="end">{self._edge():.0f} µs</text></svg>'
        )

    def _edge(self) -> float:
        return self.scale_us or self.total_us or 1.0

    def _row(self, name: str, spans: Sequence[Span], top: int, colour: str) -> str:
        to_x = WIDTH / self._edge()
        boxes = "".join(
            f'<rect x="{LEFT + span.start_us * to_x:.1f}" y="{top}" height="{ROW - 8}" stroke="#555" '
            f'stroke-width="0.5" width="{max((span.end_us - span.start_us) * to_x, 0.8):.1f}" fill="{colour}"/>'
            for span in spans
        )
        return f'<text x="2" y="{top + 17}">{name}</text>{boxes}'


def eager_timeline(launches: Sequence[Launch], *, launch_us: float, bandwidth_gb_s: float, least_us: float) -> Timeline:
    """Return the timeline of launches that the host starts one by one; a kernel cannot start before its launch ends.

    `least_us` is what the shortest kernel takes.

    >>> launch = Launch(1, "aten.add.Tensor", (), (), (), (), 1_000_000)
    >>> eager_timeline([launch] * 3, launch_us=5, bandwidth_gb_s=1000, least_us=2)
    eager: 3 launches by the host, 3 kernels, 17.0 µs in all; the device computes for 6.0 µs, 35% of the time.
    """
    host = tuple(Span(each.operator, i * launch_us, (i + 1) * launch_us) for i, each in enumerate(launches))
    return Timeline("eager", host, _device(launches, bandwidth_gb_s, least_us, lambda i, _: host[i].end_us))


def replay_timeline(
    launches: Sequence[Launch], *, launch_us: float, bandwidth_gb_s: float, least_us: float, scale_us: float = 0.0
) -> Timeline:
    """Return the timeline of a graph's replay: one launch by the host, and a short gap between two kernels.

    `scale_us` is the time at the right edge of the picture, such as `total_us` of the timeline to compare it with.
    """
    host = (Span("replay", 0.0, launch_us),)
    gap = REPLAYED_GAP_US
    device = _device(launches, bandwidth_gb_s, least_us, lambda i, free: free + gap if i else launch_us)
    return Timeline("replay", host, device, scale_us)


def _device(
    launches: Sequence[Launch], bandwidth_gb_s: float, least_us: float, ready: Callable[[int, float], float]
) -> tuple[Span, ...]:
    """Return the kernels, each after the one before and after it is ready."""
    spans: list[Span] = []
    free = 0.0
    for index, launch in enumerate(launches):
        start = max(free, ready(index, free))
        free = start + max(least_us, launch.memory_bytes / (bandwidth_gb_s * 1e3))  # 1 GB/s is 1,000 bytes a µs
        spans.append(Span(launch.operator, start, free))
    return tuple(spans)
