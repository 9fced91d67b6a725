"""The steps that a schedule has done so far, in words."""

from collections.abc import Iterator, Mapping
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


def describe_state_change(before: Mapping[str, object], after: Mapping[str, object]) -> str:
    """Return, in words, how the names in a state dict differ."""
    gone, new = sorted(before.keys() - after.keys()), sorted(after.keys() - before.keys())
    if not gone and not new:
        return "names in the state dict are as before"
    return f"the state dict lost {', '.join(gone) or 'nothing'} and gained {', '.join(new) or 'nothing'}"
