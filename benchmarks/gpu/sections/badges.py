"""Measure the bandwidth badge of a plain kernel: its text in a sandboxed worker, compiled there, against a copy.

The kernel reads one vector and writes another, as the copy does, so it should reach the highest badge. Triton compiles
for a GPU only: a dry run checks the text, and times nothing. Not yet run on CUDA.
"""

import time
from typing import Any

import torch

from autograder.host.artifacts.kernel_source import checked_kernels
from autograder.host.bandwidth import MOST_SHARE, SHARES, Bandwidth
from autograder.host.clock.kernel_contest import KernelContest
from autograder.host.clock.trial import Plan
from autograder.host.draw import Draw
from autograder.host.kinds.triton import arguments_of
from autograder.host.records import Badge
from autograder.host.sandbox import open_sandbox
from autograder.host.traced import TensorSpec
from autograder.protocol.requests.kernel_runs import LoadTimedKernels
from autograder.protocol.requests.loads import Part
from benchmarks.gpu.section import Notes, Run, Section

TEXT = """
import torch
import triton
import triton.language as tl


@triton.jit
def scale_kernel(x_ptr, out_ptr, n, factor, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + at, factor * tl.load(x_ptr + at, mask=at < n, other=0.0), mask=at < n)


def scaled(x, factor):
    out = torch.empty_like(x)
    scale_kernel[(triton.cdiv(x.numel(), 1024),)](x, out, x.numel(), factor, BLOCK=1024)
    return out
"""
OF = Bandwidth(torch.mul, (TensorSpec((1 << 24,)),), (TensorSpec((1 << 24,)),), (0.3,))


def trial() -> dict[str, Any]:
    """Time the kernel against a copy in workers at this machine's real level of isolation."""
    load = LoadTimedKernels((Part("answer", TEXT),), "scaled", arguments_of(OF))
    of = KernelContest(OF, load, open_sandbox("auto", device="cuda"), 60.0, Draw(time.time_ns(), "badges"))
    found = of.trial(Plan(max_pairs=9))
    return {"share": found.ratio, "kernel_us": found.answer_us, "copy_us": found.baseline_us, "calls": found.problems}


def run(around: Run) -> None:
    """Check the text, and note the trial on a GPU."""
    around.note("launchers", list(checked_kernels({"answer": TEXT}, ()).launchers))
    if not around.dry:
        try:
            around.note("trial", trial())
        except Exception as error:  # the reason is the result
            around.note("failed", f"{type(error).__name__}: {error}")


def failures(notes: Notes) -> list[str]:
    """Return a sentence if the kernel could not be timed, or its share is beyond belief."""
    found = [f"badges: {notes['failed']}"] if "failed" in notes else []
    share = notes["trial"]["share"] if "trial" in notes else 0.0
    return [*found, f"badges: a share of {share:.2f} is more than memory allows"] if share > MOST_SHARE else found


def missed(notes: Notes) -> list[str]:
    """Return a sentence if the kernel did not reach the highest badge."""
    share = notes["trial"]["share"] if "trial" in notes else 1.0
    return [f"badges: a plain kernel has {share:.2f} of a copy's bandwidth"] if share < SHARES[Badge.GOLD] else []


def as_markdown(notes: Notes) -> str:
    """Return the share and the times, or that nothing was timed."""
    if "trial" not in notes:
        return (
            "\n".join(f"- {each}" for each in failures(notes)) or "- nothing was timed: Triton compiles for a GPU only"
        )
    times = "{kernel_us:,.1f} µs a call, a copy {copy_us:,.1f} µs, {calls} calls a round".format(**notes["trial"])
    return f"- {notes['trial']['share']:.2f} of a copy's bandwidth: {times}"


SECTION = Section(
    "Bandwidth badges", order=60, budget_s=30, run=run, as_markdown=as_markdown, failures=failures, missed=missed
)
