"""`verify` for schedules: compare the scheduled model with the original, forward and backward."""

from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace

import torch
from torch import nn

from course_lib.errors import FusionError, ScheduleError
from course_lib.schedule.layers import Checkpointed, FusedKernel
from course_lib.schedule.schedule import Schedule
from course_lib.verify import Finding, Report
from course_lib.verify.dropout_masks import Masks
from course_lib.verify.equivalence import compare, compare_state
from course_lib.verify.observation import Observation, at_precision, observe, prepared


def verify(
    schedule: Schedule,
    inputs: Sequence[object],
    *,
    gradients: bool = True,
    modes: Sequence[str] = ("eval", "train"),
    dtypes: Sequence[torch.dtype] = (torch.float64, torch.float32),
    seed: int = 0,
) -> Report:
    """Run copies of the original and of the scheduled model on copies of `inputs`, and compare the results.

        >>> from course_lib.schedule import create_schedule
        >>> schedule = create_schedule(nn.Sequential(nn.Linear(2, 2), nn.ReLU()))
        >>> verify(schedule.trace(), (torch.ones(1, 2),)).passed
        True

    In each mode and at each precision, it compares outputs, changes of inputs and buffers, and the gradients of all
    inputs and parameters, by the rule of `course_lib.verify.error_rule`. Both models start from the same random state,
    so their dropouts drop the same elements, also in code that Inductor or TorchScript made. If a kernel draws its
    masks in another way, the original uses the masks of the kernel. Finally, the names in the state dict must be the
    same, and the scheduled model must compute the same after it has loaded other values.

    Raises `ScheduleError` for invalid arguments, or if the original itself fails on the inputs.
    """
    _require_arguments(schedule, inputs, modes, dtypes)
    reference, candidate = schedule.original, schedule.build()
    runs = [
        _Run(reference, candidate, tuple(at_precision(inputs, dtype)), mode, dtype, gradients, seed)
        for mode in modes
        for dtype in dtypes
    ]
    return Report((*(finding for run in runs for finding in run.findings()), *runs[0].state_findings()))


def _require_arguments(schedule: object, inputs: object, modes: Sequence[str], dtypes: Sequence[torch.dtype]) -> None:
    if not isinstance(schedule, Schedule) or not isinstance(inputs, (tuple, list)):
        raise ScheduleError(
            f"verify got a {type(schedule).__name__} and inputs of type {type(inputs).__name__}; it expects a Schedule "
            "and a tuple of the model's arguments."
        )
    if not set(modes) <= {"eval", "train"} or not modes or not dtypes:
        raise ScheduleError(f'verify got modes={modes!r} and dtypes={dtypes!r}; it knows the modes "eval" and "train".')


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

    def findings(self) -> list[Finding]:
        """Compare with masks from the same seed; if that fails and a kernel draws its own, with replayed masks."""
        findings = self.compared(replays=False)
        own_masks = self.mode == "train" and any(isinstance(part, FusedKernel) for part in self.candidate.modules())
        if own_masks and not all(finding.passed for finding in findings):
            replayed = [*self.compared(replays=True), *self.checkpoints_compared()]
            return min(findings, replayed, key=lambda found: sum(not finding.passed for finding in found))
        return findings

    def state_findings(self) -> list[Finding]:
        """Compare the state dicts, and the results of both models after they have loaded other values."""

        def compare_loaded(changed: nn.Module, loaded: nn.Module) -> list[Finding]:
            found = replace(self, reference=changed, candidate=loaded, gradients=False).findings()
            return [replace(one, where="after loading a state dict") for one in found]

        return compare_state(self.reference, self.candidate, self.dtype, self.mode, compare_loaded, self.seed)

    def compared(self, *, replays: bool) -> list[Finding]:
        """Return the comparisons; with `replays`, the original uses the masks that the scheduled model drew."""
        where = f"{self.mode}, {str(self.dtype).removeprefix('torch.')}"
        recording = Masks(seed=self.seed) if replays else None
        try:
            seen = self._observed(self.candidate, self.dtype, recording, checkpoints=not replays)
        except Exception as error:  # whatever the scheduled model does on these inputs
            self._expected(self.dtype, None)
            return [Finding("running", where, False, f"{type(error).__name__}: {error}")]
        try:
            eager = self._expected(self.dtype, recording)
            truth = eager if self.dtype == torch.float64 else self._expected(torch.float64, recording)
        except FusionError as error:
            return [Finding("dropout", where, False, str(error))]
        return compare(seen, eager, truth, where, layouts=False)

    def checkpoints_compared(self) -> list[Finding]:
        """Return what differs between the scheduled model with its checkpoints and without them."""
        if not any(isinstance(part, Checkpointed) for part in self.candidate.modules()):
            return []
        try:
            seen, plain = (self._observed(self.candidate, self.dtype, None, checkpoints=on) for on in (True, False))
        except Exception as error:  # an operator may fail when it is computed again
            return [Finding("running", "with checkpoints", False, f"{type(error).__name__}: {error}")]
        return compare(seen, plain, plain, "with checkpoints", layouts=False)

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
            seen = observe(rounded, at_precision(self.inputs, precision), gradients=self.gradients, seed=self.seed)
        if isinstance(seen, Exception):
            raise seen
        return seen


def _replayable_inductor() -> AbstractContextManager[object]:
    """Let Inductor draw random numbers as eager PyTorch does."""
    import torch._inductor.config as config

    return config.patch(fallback_random=True)
