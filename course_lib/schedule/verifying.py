"""`verify`: does the scheduled model compute what the original computes, forward and backward?"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass

import torch
from torch import nn

from course_lib.errors import FusionError, ScheduleError
from course_lib.fusion import Finding, Report
from course_lib.fusion.error_rule import deviation
from course_lib.fusion.observing import Observation, at_precision, observe, prepared
from course_lib.fusion.replaying import Masks
from course_lib.schedule.checkpointing import Checkpointed
from course_lib.schedule.fused import FusedKernel
from course_lib.schedule.schedule import Schedule

Triple = tuple[object, object, object]  # of the scheduled model, of the original, and of the original at fp64


def verify(
    schedule: Schedule,
    inputs: Sequence[object],
    *,
    gradients: bool = True,
    modes: Sequence[str] = ("eval", "train"),
    dtypes: Sequence[torch.dtype] = (torch.float64, torch.float32),
    seed: int = 0,
) -> Report:
    """Run copies of the original and of the scheduled model on copies of `inputs`, and compare what they give.

        >>> from course_lib.schedule import create_schedule
        >>> schedule = create_schedule(nn.Sequential(nn.Linear(2, 2), nn.ReLU()))
        >>> verify(schedule.trace(), (torch.ones(1, 2),)).passed
        True

    In each mode and at each precision: outputs, what happened to inputs and buffers, and the gradients of all inputs
    and parameters, by the rule of `course_lib.fusion.error_rule`. Both models start from the same random state, so
    their dropouts drop the same elements, also in code that Inductor or TorchScript made; a kernel that draws its
    masks in its own way has them handed to the original. At last, the names in the state dict must be the same, and
    the scheduled model must compute the same after it has loaded other values.

    Raises `ScheduleError` for arguments that cannot be meant, or where the original itself fails on the inputs.
    """
    if not isinstance(schedule, Schedule) or not isinstance(inputs, (tuple, list)):
        raise ScheduleError(
            f"verify got a {type(schedule).__name__} and inputs of type {type(inputs).__name__}; it expects a Schedule "
            "and a tuple of the model's arguments."
        )
    if not set(modes) <= {"eval", "train"} or not modes or not dtypes:
        raise ScheduleError(f'verify got modes={modes!r} and dtypes={dtypes!r}; it knows the modes "eval" and "train".')
    reference, candidate = schedule.original, schedule.build()
    findings = []
    for mode in modes:
        for dtype in dtypes:
            findings += _compare(reference, candidate, inputs, mode, dtype, gradients, seed)
    return Report((*findings, *_compare_state(reference, candidate, inputs, modes[0], dtypes[0], seed)))


def _compare(
    reference: nn.Module,
    candidate: nn.Module,
    inputs: Sequence[object],
    mode: str,
    dtype: torch.dtype,
    gradients: bool,
    seed: int,
) -> list[Finding]:
    """Compare with masks from the same seed; if that fails and a kernel may draw its own, with those handed over."""
    run = _Run(reference, candidate, tuple(at_precision(inputs, dtype)), mode, dtype, gradients, seed)
    findings = run.compared(hand_over=False)
    own_masks = mode == "train" and any(isinstance(part, FusedKernel) for part in candidate.modules())
    if own_masks and not all(finding.passed for finding in findings):
        handed_over = run.compared(hand_over=True)
        handed_over += run.checkpoints_compared()
        return min(findings, handed_over, key=lambda found: sum(not finding.passed for finding in found))
    return findings


@dataclass(frozen=True)
class _Run:
    """One mode and one precision of a comparison."""

    reference: nn.Module
    candidate: nn.Module
    inputs: tuple[object, ...]
    mode: str
    dtype: torch.dtype
    gradients: bool
    seed: int

    def compared(self, *, hand_over: bool) -> list[Finding]:
        """Return what was compared; with `hand_over`, the original gets the masks that the scheduled model drew."""
        where = f"{self.mode}, {str(self.dtype).removeprefix('torch.')}"
        recording = Masks(seed=self.seed) if hand_over else None
        try:
            seen = self._observed(self.candidate, self.dtype, recording, checkpoints=not hand_over)
        except Exception as error:  # whatever the scheduled model does on these inputs
            self._expected(self.dtype, None)
            return [Finding("running", where, False, f"{type(error).__name__}: {error}")]
        try:
            eager = self._expected(self.dtype, recording)
            truth = eager if self.dtype == torch.float64 else self._expected(torch.float64, recording)
        except FusionError as error:
            return [Finding("dropout", where, False, str(error))]
        return [_finding(where, what, triple, size) for what, triple, size in _triples(seen, eager, truth)]

    def checkpoints_compared(self) -> list[Finding]:
        """Return what differs between the scheduled model with its checkpoints and without them."""
        if not any(isinstance(part, Checkpointed) for part in self.candidate.modules()):
            return []
        try:
            seen, plain = (self._observed(self.candidate, self.dtype, None, checkpoints=on) for on in (True, False))
        except Exception as error:  # an operator may not stand being computed again
            return [Finding("running", "with checkpoints", False, f"{type(error).__name__}: {error}")]
        triples = _triples(seen, plain, plain)
        return [_finding("with checkpoints", what, triple, size) for what, triple, size in triples]

    def _expected(self, precision: torch.dtype, recording: Masks | None) -> Observation:
        masks = None if recording is None else Masks(recording.recorded)
        try:
            return self._observed(self.reference, precision, masks)
        except FusionError:
            raise
        except Exception as error:  # whatever the original does on these inputs
            raise ScheduleError(
                f"verify cannot compare: the original {type(self.reference).__name__} fails in mode {self.mode!r} at "
                f"{precision} ({type(error).__name__}: {error}); give inputs that it takes."
            ) from error

    def _observed(
        self, model: nn.Module, precision: torch.dtype, masks: Masks | None, *, checkpoints: bool = True
    ) -> Observation:
        rounded = prepared(model, self.dtype, self.mode)
        assert isinstance(rounded, nn.Module), "a module is prepared as a module"
        rounded.to(precision)
        for part in rounded.modules():
            if isinstance(part, Checkpointed):
                part.enabled = checkpoints
        with masks or nullcontext(), _replayable_inductor():
            return observe(rounded, at_precision(self.inputs, precision), gradients=self.gradients, seed=self.seed)


def _triples(seen: Observation, eager: Observation, truth: Observation) -> Iterator[tuple[str, Triple, float]]:
    """Yield what to compare, with the magnitude of the numbers that were added up where it is known."""
    yield "structure of the result", (str(seen.structure), str(eager.structure), None), 0.0
    if seen.structure != eager.structure:
        return
    for number, outputs in enumerate(zip(seen.outputs, eager.outputs, truth.outputs, strict=True)):
        yield f"output {number}", outputs, 0.0
    for number, after in enumerate(zip(seen.inputs_after, eager.inputs_after, truth.inputs_after, strict=True)):
        yield f"input {number} after the run", after, 0.0
    found = [*truth.input_gradients, *truth.parameter_gradients.values()]
    size = max((float(one.abs().max()) for one in found if one is not None and one.numel()), default=0.0)
    gradients = zip(seen.input_gradients, eager.input_gradients, truth.input_gradients, strict=True)
    for number, gradient in enumerate(gradients):
        yield f"gradient of input {number}", gradient, size
    by_name = [run.parameter_gradients for run in (seen, eager, truth)]
    yield from _by_name("gradient of", by_name, size)
    yield from _by_name("buffer", [run.buffers_after for run in (seen, eager, truth)], 0.0)


def _by_name(
    what: str, runs: Sequence[Mapping[str, torch.Tensor | None]], size: float
) -> Iterator[tuple[str, Triple, float]]:
    for name in runs[0].keys() | runs[1].keys():
        first, second, third = (run.get(name) for run in runs)
        yield f"{what} {name}", (first, second, third), size


def _finding(where: str, what: str, triple: Triple, size: float) -> Finding:
    seen, eager, truth = triple
    if isinstance(seen, torch.Tensor) and isinstance(eager, torch.Tensor) and isinstance(truth, torch.Tensor):
        if (seen.dtype, seen.shape) == (eager.dtype, eager.shape):
            measured = deviation(seen, truth, eager, magnitude=size)
            return Finding(what, where, measured.within_bound, "" if measured.within_bound else str(measured))
        found, expected = (f"{value.dtype} {tuple(value.shape)}" for value in (seen, eager))
        return Finding(what, where, False, f"{found}, expected {expected}")
    same = type(seen) is type(eager) and not isinstance(seen, torch.Tensor) and seen == eager
    return Finding(what, where, same, "" if same else f"{_shown(seen)}, expected {_shown(eager)}")


def _shown(value: object) -> str:
    return f"a tensor {tuple(value.shape)}" if isinstance(value, torch.Tensor) else repr(value)


def _compare_state(
    reference: nn.Module, candidate: nn.Module, inputs: Sequence[object], mode: str, dtype: torch.dtype, seed: int
) -> list[Finding]:
    """Compare the names in the state dicts, and what is computed after both have loaded other values."""
    states = [
        {name: tuple(getattr(value, "shape", ())) for name, value in model.state_dict().items()}
        for model in (candidate, reference)
    ]
    if states[0] != states[1]:
        differing = sorted({name for name, _ in set(states[0].items()) ^ set(states[1].items())})
        return [Finding("state dict", "always", False, f"entries differ: {', '.join(differing)}")]
    changed, loaded = (prepared(model, dtype, mode) for model in (reference, candidate))
    assert isinstance(changed, nn.Module), "a module is prepared as a module"
    assert isinstance(loaded, nn.Module), "a module is prepared as a module"
    with torch.no_grad():
        for number, parameter in enumerate(changed.parameters()):
            parameter.mul_(1 + (number % 7 + 1) / 16)  # each by another factor, so that no two could be exchanged
    loaded.load_state_dict(changed.state_dict())
    found = _compare(changed, loaded, inputs, mode, dtype, gradients=False, seed=seed)
    renamed = [Finding(one.what, "after loading a state dict", one.passed, one.detail) for one in found]
    return [Finding("state dict", "always", True), *renamed]


def _replayable_inductor() -> AbstractContextManager[object]:
    """Let Inductor draw random numbers as eager PyTorch does, where it has been loaded or will be."""
    import torch._inductor.config as config

    return config.patch(fallback_random=True)
