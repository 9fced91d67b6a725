"""Run the self-check of the timer on the device."""

import dataclasses

from benchmarks.gpu.section import Notes, Run, Section
from course_lib.timing import selfcheck


def run(around: Run) -> None:
    """Note each check."""
    found = selfcheck(device=around.device)
    around.note("dry", around.dry)
    around.note("checks", [dataclasses.asdict(check) for check in found.checks])


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
    return "\n".join(lines)


SECTION = Section("Timer", order=30, budget_s=50, run=run, as_markdown=as_markdown, failures=failures)
