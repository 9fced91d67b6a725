"""A machine that does not hold still: times of known programs with drift, bursts and a rhythm, the same for a seed."""

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from course_lib.errors import TimingError

RHYTHM = 4  # every fourth sample is slow, as when something else wakes up regularly


@dataclass(frozen=True)
class NoisyMachine:
    """Programs of known duration on a machine that other things happen to.

    >>> NoisyMachine({"a": 100.0, "b": 50.0}, jitter=0.0).run(["a", "b", "a"])
    [100.0, 50.0, 100.0]
    >>> NoisyMachine({"a": 100.0}, jitter=0.0, drift=1.0).run(["a", "a", "a"])
    [100.0, 150.0, 200.0]
    """

    programs_us: Mapping[str, float]
    jitter: float = 0.01  # standard deviation, as a share
    drift: float = 0.0  # how much slower the last sample is than the first, as a share; below 0 it gets faster
    bursts: float = 0.0  # share of the samples that something interrupts
    burst_factor: float = 6.0
    rhythm: float = 0.0  # how much slower each fourth sample is, as a share
    phase: int = 0  # of the rhythm
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
