"""What a schedule has done so far, to be read."""

from collections.abc import Iterator
from dataclasses import dataclass


@dataclass(frozen=True)
class Step:
    """One thing that a schedule did."""

    action: str  # the method, such as "fuse"
    path: str  # of the sub-module, "" for the whole model
    detail: str

    def __str__(self) -> str:
        return f"{self.action} {self.path or 'the model'}: {self.detail}"


@dataclass(frozen=True, repr=False)
class History:
    """All steps of a schedule, the first one first."""

    steps: tuple[Step, ...]

    def __len__(self) -> int:
        return len(self.steps)

    def __iter__(self) -> Iterator[Step]:
        return iter(self.steps)

    def __getitem__(self, number: int) -> Step:
        return self.steps[number]

    def __str__(self) -> str:
        return "\n".join(f"{n}. {step}" for n, step in enumerate(self.steps, 1)) or "nothing was scheduled yet"

    __repr__ = __str__  # a notebook, a terminal and a log all show the readable form
