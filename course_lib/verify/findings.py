"""What `verify` reports: a `Finding` for each comparison of what two programs gave and did."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import torch

from course_lib.verify.error_rule import deviation
from course_lib.verify.observation import Observation

Compared = tuple[str, bool, str]  # what was compared, whether it agrees, and how it differs


@dataclass(frozen=True)
class Finding:
    """One comparison: what was compared, under which circumstances, and the difference that was seen."""

    what: str
    where: str  # such as "train, float32"
    passed: bool
    detail: str = ""

    def __str__(self) -> str:
        return (
            f"{'ok  ' if self.passed else 'FAIL'} {self.where}: {self.what}{': ' if self.detail else ''}{self.detail}"
        )


@dataclass(frozen=True, repr=False)
class Report:
    """Everything that `verify` compared."""

    findings: tuple[Finding, ...]

    @property
    def passed(self) -> bool:
        """Whether no difference was seen."""
        return all(finding.passed for finding in self.findings)

    @property
    def failures(self) -> tuple[Finding, ...]:
        """The comparisons that failed."""
        return tuple(finding for finding in self.findings if not finding.passed)

    def __str__(self) -> str:
        head = f"{len(self.findings)} comparisons, {len(self.failures)} failed"
        if self.failures:
            return "\n".join([head, *(f"  {finding}" for finding in self.failures)])
        by_place = Counter(finding.where for finding in self.findings)
        return "\n".join([head, *(f"  ok   {where}: {count} comparisons" for where, count in by_place.items())])

    __repr__ = __str__  # a notebook, a terminal and a log all show the readable form


def compare(
    seen: Observation, eager: Observation, truth: Observation, where: str, *, layouts: bool = True
) -> list[Finding]:
    """Return the differences between what a candidate did, and what its reference did at this precision and in fp64.

    Without `layouts`, strides and shared memory of the results may differ.
    """
    compared = _differences(seen, eager, truth, layouts)
    return [Finding(what, where, same, "" if same else detail) for what, same, detail in compared]


def _differences(seen: Observation, eager: Observation, truth: Observation, layouts: bool) -> Iterator[Compared]:
    yield "structure", seen.structure == eager.structure, f"{seen.structure}, expected {eager.structure}"
    if seen.structure != eager.structure:
        return
    if layouts:
        yield "strides", seen.strides == eager.strides, f"{seen.strides}, expected {eager.strides}"
        yield "aliasing", seen.aliases == eager.aliases, f"{seen.aliases}, expected {eager.aliases}"
    for number, values in enumerate(zip(seen.outputs, eager.outputs, truth.outputs, strict=True)):
        yield _same(f"output {number}", *values)
    for number, values in enumerate(zip(seen.inputs_after, eager.inputs_after, truth.inputs_after, strict=True)):
        yield _same(f"input {number} after the run", *values)
    size = _largest((*truth.input_gradients, *truth.parameter_gradients.values()))
    for number, found in enumerate(
        zip(seen.input_gradients, eager.input_gradients, truth.input_gradients, strict=True)
    ):
        yield _same(f"gradient of input {number}", *found, magnitude=size)
    yield from _same_by_name("gradient of", *(run.parameter_gradients for run in (seen, eager, truth)), magnitude=size)
    yield from _same_by_name("buffer", *(run.buffers_after for run in (seen, eager, truth)))


def _largest(tensors: Sequence[torch.Tensor | None]) -> float:
    """Return the largest finite magnitude in tensors; gradients that cancel out are sums of numbers of that size."""
    finite = [tensor[torch.isfinite(tensor)].abs() for tensor in tensors if tensor is not None]
    return max((float(tensor.max()) for tensor in finite if tensor.numel()), default=0.0)


def _same_by_name(
    what: str,
    seen: Mapping[str, object],
    eager: Mapping[str, object],
    truth: Mapping[str, object],
    *,
    magnitude: float = 0.0,
) -> Iterator[Compared]:
    if seen.keys() != eager.keys() and any(value is not None for value in (*seen.values(), *eager.values())):
        yield f"{what} what", False, f"{sorted(seen)}, expected {sorted(eager)}"
        return
    for name in seen:
        yield _same(f"{what} {name}", seen[name], eager.get(name), truth.get(name), magnitude=magnitude)


def _same(what: str, seen: object, eager: object, truth: object, *, magnitude: float = 0.0) -> Compared:
    if not (isinstance(seen, torch.Tensor) and isinstance(eager, torch.Tensor) and isinstance(truth, torch.Tensor)):
        both_zero = all(value is None or _is_zero(value) for value in (seen, eager))
        same = type(seen) is type(eager) and not isinstance(seen, torch.Tensor) and seen == eager
        return what, same or both_zero, f"{_shown(seen)}, expected {_shown(eager)}"
    if (seen.dtype, seen.shape) != (eager.dtype, eager.shape):
        found, expected = (f"{value.dtype} {tuple(value.shape)}" for value in (seen, eager))
        return what, False, f"{found}, expected {expected}"
    measured = deviation(seen, truth, eager, magnitude=magnitude)
    return what, measured.within_bound, str(measured)


def _shown(value: object) -> str:
    return f"a tensor {tuple(value.shape)}" if isinstance(value, torch.Tensor) else repr(value)


def _is_zero(value: object) -> bool:
    return isinstance(value, torch.Tensor) and not bool(value.any())
