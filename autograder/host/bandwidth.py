"""The work on which the bandwidth of an answer's kernels is measured, and the shares that earn badges.

    bandwidth=Bandwidth(torch.lerp, inputs=(TensorSpec((1 << 24,)),) * 2, numbers=(0.3,), outputs=...)

An exercise whose kernels are limited by memory adds only this. The kernels are compared with a copy on the same GPU at
the same time, so the badge depends little on the model of GPU.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from autograder.host.records import Badge
from autograder.host.speed import ROOFLINE_MARGIN
from autograder.host.traced import TensorSpec

SHARES = {Badge.BRONZE: 0.60, Badge.SILVER: 0.75, Badge.GOLD: 0.85}
"""The least share of a copy's bandwidth for each badge."""
MOST_SHARE = ROOFLINE_MARGIN
"""A larger share is not believed: a person has to look at it."""


@dataclass(frozen=True)
class Bandwidth:
    """One call of a launcher on large random tensors, which come first, and numbers; `reference` takes the same."""

    reference: Callable[..., Any]
    inputs: tuple[TensorSpec, ...]
    outputs: tuple[TensorSpec, ...]
    numbers: tuple[float, ...] = ()

    @property
    def bytes_moved(self) -> int:
        """Return the bytes that any kernel has to move: inputs are read once, outputs written once."""
        return sum(_bytes(each) for each in (*self.inputs, *self.outputs))


def _bytes(spec: TensorSpec) -> int:
    count = spec.dtype.itemsize
    for size in spec.shape:
        count *= size
    return count
