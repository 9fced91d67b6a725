"""Measure each fused operator, eager PyTorch, torch.compile and a peer, as fractions of the speed of a copy."""

import dataclasses

from benchmarks import kernel_times
from benchmarks.gpu.section import Notes, Run, Section
from benchmarks.kernel_times import Report


def run(around: Run) -> None:
    """Measure, and note the report after each operator."""
    plan = kernel_times.dry_plan() if around.dry else kernel_times.cuda_plan()
    plan = dataclasses.replace(plan, budget_s=min(plan.budget_s, around.left_s - 10))  # 10 s for one operator
    last = kernel_times.measure_kernels(plan, lambda report: _note(around, report))
    _note(around, last)


def _note(around: Run, report: Report) -> None:
    around.note("report", report.to_json())


def _report(notes: Notes) -> Report:
    return Report.from_json(notes["report"])


def missed(notes: Notes) -> list[str]:
    """Return a sentence for each target that was missed."""
    return kernel_times.missed_targets(_report(notes)) if notes else []


def as_markdown(notes: Notes) -> str:
    """Return the table."""
    return kernel_times.as_markdown(_report(notes))


SECTION = Section("Kernels", order=14, budget_s=150, run=run, as_markdown=as_markdown, missed=missed)
