"""A device that works on its own while the host goes on, on a clock that we make: each way to measure wrongly, exactly.

A script is a list of steps:

    draw         the device begins to make a new input; the host goes on
    launch NAME  the device begins the program NAME on the newest input; the host goes on
    use          the device adds the result to a sum, so that it is needed
    sync         the host waits until the device has nothing left to do
    clock        the host reads its clock; two readings make a window, the next two another

The first launch of a program compiles it, which takes the host's time. A program that reads an input for the second
time finds it in the cache. A launch whose result no `use` asks for before the next launch is dropped by the compiler.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from course_lib.errors import TimingError

STEPS = ("draw", "use", "sync", "clock")


class Flaw(StrEnum):
    """Why a window measured something else than its programs."""

    UNFINISHED = "unfinished"  # the clock was read while the device still worked
    EARLIER = "earlier"  # the device still worked on something else when the window began
    COMPILED = "compiled"  # a program was compiled inside
    DRAWN = "drawn"  # an input was made inside
    CACHED = "cached"  # a program read an input that it had read before
    DROPPED = "dropped"  # a result was never used, so it was never computed


@dataclass(frozen=True)
class Window:
    """What lies between two readings of the clock."""

    programs: tuple[str, ...]  # launched inside, in order
    measured_us: float
    true_us: float  # of these programs, compiled, on new inputs, results used
    flaws: frozenset[Flaw]

    def __str__(self) -> str:
        names = " ".join(self.programs) or "nothing"
        flaws = ", ".join(sorted(self.flaws)) or "sound"
        return f"{names}: measured {self.measured_us:.0f} µs, takes {self.true_us:.0f} µs ({flaws})"

    __repr__ = __str__


@dataclass(frozen=True)
class SimulatedDevice:
    """A device with programs of known duration.

    >>> device = SimulatedDevice({"gelu": 500.0})
    >>> device.run(["clock", "launch gelu", "use", "clock"])[0].flaws == {Flaw.COMPILED, Flaw.UNFINISHED}
    True
    """

    programs_us: Mapping[str, float]
    launch_us: float = 5.0  # of the host, for anything it asks of the device
    draw_us: float = 400.0
    use_us: float = 4.0
    compile_us: float = 30_000.0  # of the host, at the first launch of each program
    cached_share: float = 0.5  # of the time, if the input was read before

    def run(self, script: Sequence[str]) -> tuple[Window, ...]:
        """Do the steps one after the other and return the windows.

        Raises `TimingError` for a step or a program that does not exist.
        """
        state = _State()
        for number, step in enumerate(script):
            self._do(step, state, needed=_is_used(script, number))
        return tuple(state.windows)

    def _do(self, step: str, state: "_State", *, needed: bool) -> None:
        if step == "clock":
            state.read_clock(self)
        elif step == "sync":
            state.host_us = max(state.host_us, state.busy_until_us)
        elif step == "use":
            state.give(self.launch_us, self.use_us)
        elif step == "draw":
            state.give(self.launch_us, self.draw_us)
            state.input += 1
            state.note(Flaw.DRAWN)
        elif step.startswith("launch ") and step.removeprefix("launch ") in self.programs_us:
            self._launch(step.removeprefix("launch "), state, needed=needed)
        else:
            known = ", ".join([*STEPS, *(f"launch {name}" for name in self.programs_us)])
            raise TimingError(f"SimulatedDevice.run got the step {step!r}; it knows {known}.")

    def _launch(self, name: str, state: "_State", *, needed: bool) -> None:
        state.launched.append(name)
        if name not in state.compiled:
            state.compiled.add(name)
            state.host_us += self.compile_us
            state.note(Flaw.COMPILED)
        if not needed:
            state.give(self.launch_us, 0.0)
            state.note(Flaw.DROPPED)
            return
        cached = (name, state.input) in state.seen
        state.seen.add((name, state.input))
        state.give(self.launch_us, self.programs_us[name] * (self.cached_share if cached else 1.0))
        if cached:
            state.note(Flaw.CACHED)


@dataclass
class _State:
    """Where host and device are."""

    host_us: float = 0.0
    busy_until_us: float = 0.0
    input: int = 0
    compiled: set[str] = field(default_factory=set)
    seen: set[tuple[str, int]] = field(default_factory=set)
    began_us: float | None = None  # of the window that is open
    launched: list[str] = field(default_factory=list)
    flaws: set[Flaw] = field(default_factory=set)
    windows: list[Window] = field(default_factory=list)

    def give(self, launch_us: float, work_us: float) -> None:
        """Put work at the end of the device's queue."""
        self.host_us += launch_us
        if work_us:
            self.busy_until_us = max(self.busy_until_us, self.host_us) + work_us

    def note(self, flaw: Flaw) -> None:
        self.flaws.add(flaw)

    def read_clock(self, device: SimulatedDevice) -> None:
        """Open a window, or close the one that is open."""
        busy = self.busy_until_us > self.host_us
        if self.began_us is None:
            self.began_us, self.launched, self.flaws = self.host_us, [], {Flaw.EARLIER} if busy else set()
            return
        if busy:
            self.flaws.add(Flaw.UNFINISHED)
        true_us = sum(device.programs_us[name] for name in self.launched)
        measured = self.host_us - self.began_us
        self.windows.append(Window(tuple(self.launched), measured, true_us, frozenset(self.flaws)))
        self.began_us = None


def _is_used(script: Sequence[str], number: int) -> bool:
    """Whether a `use` comes before the next launch; a compiler sees the whole script."""
    for step in script[number + 1 :]:
        if step == "use":
            return True
        if step.startswith("launch "):
            return False
    return False
