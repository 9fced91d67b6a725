"""Hidden checks and controls of exercise 02.4."""

from __future__ import annotations

from autograder.exercises.measuring import read_a_trace as visible
from autograder.host.draw import Draw
from autograder.host.exercise import Check, Control, HiddenPart


def _overlapping(draw: Draw) -> list[visible.Trace]:
    return [visible.trace(draw, ranges, streams=2) for ranges in (3, 5)]


def _noisy(draw: Draw) -> list[visible.Trace]:
    return [visible.trace(draw, ranges, noise=True) for ranges in (4, 6)]


REFERENCE = """
def read_trace(trace):
    complete = [event for event in trace["traceEvents"] if event["ph"] == "X"]
    kernels = sorted((e for e in complete if e["cat"] == "kernel"), key=lambda event: event["ts"])
    totals, gap, reached = {}, 0, kernels[0]["ts"]
    for kernel in kernels:
        totals[kernel["name"]] = totals.get(kernel["name"], 0) + kernel["dur"]
        gap = max(gap, kernel["ts"] - reached)
        reached = max(reached, kernel["ts"] + kernel["dur"])
    launch_bound = []
    for event in complete:
        if event["cat"] == "gpu_user_annotation":
            busy, reached, end = 0, event["ts"], event["ts"] + event["dur"]
            for kernel in kernels:
                stop = min(kernel["ts"] + kernel["dur"], end)
                busy += max(0, stop - max(kernel["ts"], reached))
                reached = max(reached, stop)
            if busy < event["dur"] / 2:
                launch_bound.append(event["name"])
    top = max(sorted(totals), key=lambda name: totals[name])
    return {"top_kernel": top, "longest_gap_us": gap, "launch_bound": sorted(launch_bound)}
"""

HIDDEN = HiddenPart(
    checks=(
        Check("the longest gap of two streams", "two streams", 0.8, visible.reads("longest_gap_us", _overlapping)),
        Check("launch-bound ranges of two streams", "two streams", 0.8, visible.reads("launch_bound", _overlapping)),
        Check("the top kernel among other events", "other events", 0.8, visible.reads("top_kernel", _noisy)),
        Check("the longest gap among other events", "other events", 0.8, visible.reads("longest_gap_us", _noisy)),
    ),
    controls=(
        Control("reference", REFERENCE, 8),
        Control(
            "an answer without looking",
            "def read_trace(trace):\n"
            "    return {'top_kernel': 'gemm_kernel', 'longest_gap_us': 0, 'launch_bound': []}\n",
            0,
        ),
        Control("one stream only", REFERENCE.replace("reached = max(reached, stop)", "pass"), 8, below=True),
    ),
)
