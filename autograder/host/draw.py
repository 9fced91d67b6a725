"""Random, seeded inputs: each check draws from a stream of its own, so that a new check changes no other.

Checks share a stream where inputs are slow to make, such as programs that Inductor lowers.
"""

import hashlib
import random
from collections.abc import Sequence
from typing import TypeVar

import torch

T = TypeVar("T")


class Draw:
    """Random numbers for one check of one grading.

    The stream follows from the grading's secret seed and the names of exercise and check; the worker never sees the
    seed.
    """

    def __init__(self, seed: int, *names: str) -> None:
        self._seed, self._names = seed, names
        self._digest = hashlib.sha256("\0".join([str(seed), *names]).encode()).digest()
        self._random = random.Random(self._digest)
        self._tensors = 0

    def shared(self, name: str) -> "Draw":
        """Return a new stream, equal for all checks of one exercise in one grading that ask for `name`."""
        return Draw(self._seed, *self._names[:-1], "", name)

    def _generator(self) -> torch.Generator:
        """Return a new generator for each tensor: torch's has 32 bits of seed, and its output reveals later numbers."""
        self._tensors += 1
        digest = hashlib.sha256(self._digest + self._tensors.to_bytes(8, "little")).digest()
        return torch.Generator().manual_seed(int.from_bytes(digest[:8], "little") >> 1)

    def normal(self, *shape: int, dtype: torch.dtype = torch.float32, scale: float = 1.0) -> torch.Tensor:
        """Return independent normal numbers with standard deviation `scale`."""
        return (torch.randn(shape, generator=self._generator(), dtype=torch.float64) * scale).to(dtype)

    def keep(self, *shape: int, probability: float = 0.7) -> torch.Tensor:
        """Return a boolean tensor that is True with `probability`."""
        return torch.rand(shape, generator=self._generator()) < probability

    def integer(self, low: int, high: int) -> int:
        """Return an integer from `low` to `high`, both included."""
        return self._random.randint(low, high)

    def choice(self, options: Sequence[T]) -> T:
        """Return one of `options`."""
        return self._random.choice(options)

    def sample(self, options: Sequence[T], count: int) -> list[T]:
        """Return `count` different ones of `options`, in random order."""
        return self._random.sample(options, count)

    def chance(self, probability: float) -> bool:
        """Return True with `probability`."""
        return self._random.random() < probability
