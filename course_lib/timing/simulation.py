"""Simulate an asynchronous device and a noisy machine, whose true times are known, to study errors of measurement.

A script is a list of steps:

    draw         the device begins to make a new input; the host continues
    launch NAME  the device begins the program NAME on the newest input; the host continues
    use          the device adds the result to a sum, so that it is needed
    sync         the host waits until the device has nothing left to do
    clock        the host reads its clock; two readings make a window, the next two another

The first launch of a program compiles it, which takes the host's time. A program that reads an input for the second
time finds it in the cache. The compiler drops a launch if no `use` follows it before the next launch.
"""

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from course_lib.errors import TimingError

STEPS = ("draw", "use", "sync", "clock")


class Flaw(StrEnum):
    """Name an error: the reason why a window did not measure only its programs."""

    UNFINISHED = "unfinished"  # the clock was read while the device still worked
    EARLIER = "earlier"  # the device still worked on something else when the window began
    COMPILED = "compiled"  # a program was compiled inside
    DRAWN = "drawn"  # an input was made inside
    CACHED = "cached"  # a program read an input that it had read before
    DROPPED = "dropped"  # a result was never used, so it was never computed


@dataclass(frozen=True)
class Window:
    """Hold what happened between two readings of the clock."""

    programs: tuple[str, ...]  # launched inside, in order
    measured_us: float
    true_us: float  # time of these programs when compiled, on new inputs, with used results
    flaws: frozenset[Flaw]

    def __str__(self) -> str:
        names = " ".join(self.programs) or "nothing"
        flaws = ", ".join(sorted(self.flaws)) or "sound"
        return f"{names}: measured {self.measured_us:.0f} µs, takes {self.true_us:.0f} µs ({flaws})"

    __repr__ = __str__


@dataclass(frozen=True)
class SimulatedDevice:
    """Simulate a device with programs of known duration.

    >>> device = SimulatedDevice({"gelu": 500.0})
    >>> device.run(["clock", "launch gelu", "use", "clock"])[0].flaws == {Flaw.COMPILED, Flaw.UNFINISHED}
    True
    """

    programs_us: Mapping[str, float]
    launch_us: float = 5.0  # of the host, for each command to the device
    draw_us: float = 400.0
    use_us: float = 4.0
    compile_us: float = 30_000.0  # of the host, at the first launch of each program
    cached_share: float = 0.5  # of the time, if the input was read before

    def run(self, script: Sequence[str]) -> tuple[Window, ...]:
        """Execute the steps in order and return the windows.

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
    """Hold the times of host and device."""

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
        """Append work to the queue of the device."""
        self.host_us += launch_us
        if work_us:
            self.busy_until_us = max(self.busy_until_us, self.host_us) + work_us

    def note(self, flaw: Flaw) -> None:
        self.flaws.add(flaw)

    def read_clock(self, device: SimulatedDevice) -> None:
        """Open a window, or close the open one."""
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
    """Tell whether a `use` comes before the next launch; a compiler sees the whole script."""
    for step in script[number + 1 :]:
        if step == "use":
            return True
        if step.startswith("launch "):
            return False
    return False


RHYTHM = 4  # every fourth sample is slow, as with a periodic process


@dataclass(frozen=True)
class NoisyMachine:
    """Simulate programs of known duration on a machine with noise, drift and interruptions.

    >>> NoisyMachine({"a": 100.0, "b": 50.0}, jitter=0.0).run(["a", "b", "a"])
    [100.0, 50.0, 100.0]
    >>> NoisyMachine({"a": 100.0}, jitter=0.0, drift=1.0).run(["a", "a", "a"])
    [100.0, 150.0, 200.0]
    """

    programs_us: Mapping[str, float]
    jitter: float = 0.01  # standard deviation, as a share
    drift: float = 0.0  # how much slower the last sample is than the first, as a share; below 0 it gets faster
    bursts: float = 0.0  # share of the samples that are interrupted
    burst_factor: float = 6.0
    rhythm: float = 0.0  # how much slower each fourth sample is, as a share
    phase: int = 0  # of the period
    seed: int = 0

    def run(self, order: Sequence[str]) -> list[float]:
        """Run the programs in this order and return the time of each sample in µs.

        Raises `TimingError` for a program that does not exist.
        """
        unknown = sorted(set(order) - set(self.programs_us))
        if unknown:
            known = ", ".join(self.programs_us)
            raise TimingError(f"NoisyMachine.run got the program {unknown[0]!r}; it knows {known}.")
        chance = random.Random(self.seed)
        last = max(len(order) - 1, 1)
        return [self.programs_us[name] * self._factor(i, i / last, chance) for i, name in enumerate(order)]

    def _factor(self, number: int, progress: float, chance: random.Random) -> float:
        factor = (1 + self.drift * progress) * max(1 + self.jitter * chance.gauss(0, 1), 0.1)
        if chance.random() < self.bursts:
            factor *= self.burst_factor
        if number % RHYTHM == self.phase % RHYTHM:
            factor *= 1 + self.rhythm
        return factor
