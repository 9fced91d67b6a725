"""Run the self-check of the timer on the device."""

import dataclasses
from collections.abc import Callable
from typing import Any

import torch

from benchmarks.gpu.section import Notes, Run, Section
from course_lib.timing import selfcheck
from course_lib.timing.cuda_clocks import CudaEventClock, read_all, write_all
from course_lib.timing.device_checks import copy_us

COPIED_BYTES = 100_000_000


def run(around: Run) -> None:
    """Note each check."""
    found = selfcheck(device=around.device)
    around.note("dry", around.dry)
    around.note("checks", [dataclasses.asdict(check) for check in found.checks])
    if not around.dry:
        around.note("copies", {flush.__name__: copied_gb_per_s(flush) for flush in (read_all, write_all)})


def copied_gb_per_s(flush: Callable[[Any], object]) -> float:
    """Return the speed of a copy as large as what a kernel moves, with a cold cache after that flush."""
    clock = CudaEventClock(torch.device("cuda", torch.cuda.current_device()), cold=True, flush=flush)
    return 2 * COPIED_BYTES / copy_us(clock, COPIED_BYTES) / 1e3


def failures(notes: Notes) -> list[str]:
    """Return a sentence for each check that failed, and none in a dry run, since a shared CPU sometimes fails."""
    failed = [check for check in notes.get("checks", []) if not check["passed"]]
    found = [f"{check['name']} is {check['measured']:.4g} {check['unit']}; {check['told']}" for check in failed]
    return [] if notes.get("dry") else found


def as_markdown(notes: Notes) -> str:
    """Return a row for each check."""
    lines = ["| check | measured | passes if | |", "|---|---|---|---|"]
    for check in notes["checks"]:
        measured = f"{check['measured']:.4g} {check['unit']}"
        verdict = "ok" if check["passed"] else "**failed**"
        lines.append(f"| {check['name']} | {measured} | {check['told']} | {verdict} |")
    names = {"read_all": "reading", "write_all": "writing"}
    copies = notes.get("copies", {})
    lines += [""] if copies else []
    lines += [f"- copy of 100 MB after a flush by {names[name]}: {speed:.0f} GB/s" for name, speed in copies.items()]
    return "\n".join(lines)


SECTION = Section("Timer", order=35, budget_s=20, run=run, as_markdown=as_markdown, failures=failures)
