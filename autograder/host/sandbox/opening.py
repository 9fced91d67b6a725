"""Chooses the strongest level that this machine has, by trying."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import Literal

from autograder.host.sandbox.bubblewrap import Bubblewrap
from autograder.host.sandbox.cgroup import find_hierarchy
from autograder.host.sandbox.errors import SandboxError
from autograder.host.sandbox.levels import PROMISES, Level
from autograder.host.sandbox.plain import Plain
from autograder.host.sandbox.probe import Finding, probe
from autograder.host.sandbox.sandbox import Sandbox

ISOLATED = (Level.ISOLATED_AND_LIMITED, Level.ISOLATED)
TRUST = "--i-trust-this-code"


@dataclass(frozen=True)
class Attempt:
    """What came of trying a level."""

    sandbox: Sandbox | None
    findings: tuple[Finding, ...] = ()
    failure: str = ""
    """Why there is no sandbox, as a sentence."""


def open_sandbox(level: int | Literal["auto"] = "auto", *, trust: bool = False) -> Sandbox:
    """Return the sandbox of a level, or the strongest there is, after attacks on it have failed.

    The attacks run once in a process and take about half a second. ``trust`` permits level 5, which isolates nothing;
    without it, a machine that has no other level raises SandboxError.
    """
    if level == Level.NONE or (level == "auto" and trust and not _works_at_all()):
        return _plain(trust)
    if level != "auto" and level not in ISOLATED:
        raise SandboxError(_not_offered(level))
    attempts = [_attempt(each) for each in ISOLATED if level in ("auto", each)]
    for attempt in attempts:
        if attempt.sandbox:
            return attempt.sandbox
    reasons = " ".join(dict.fromkeys(attempt.failure for attempt in attempts))
    raise SandboxError(f"Student code cannot be isolated here. {reasons} ({TRUST} runs it with your rights instead.)")


def describe() -> str:
    """Return what `autograder sandbox` prints: the level of this machine, all levels, and each attack's outcome."""
    return "\n".join(_lines())


def _works_at_all() -> bool:
    return any(_attempt(level).sandbox for level in ISOLATED)


def _plain(trust: bool) -> Sandbox:
    if not trust:
        raise SandboxError(f"Level 5 isolates nothing: student code runs with your rights. {TRUST} permits it.")
    return Plain()


def _not_offered(level: int) -> str:
    if level in PROMISES:
        return f"Level {level} ({PROMISES[Level(level)].title}) is not in this version; 1, 2 and 5 are."
    return f"There is no level {level!r}; levels go from 1 (strongest) to 5 (none)."


@cache
def _attempt(level: Level) -> Attempt:
    try:
        hierarchy = find_hierarchy() if level == Level.ISOLATED_AND_LIMITED else None
        if level == Level.ISOLATED_AND_LIMITED and hierarchy is None:
            return Attempt(None, failure="No control group can be made here.")
        sandbox = Bubblewrap(hierarchy)
        findings = probe(sandbox)
    except SandboxError as error:
        return Attempt(None, failure=str(error))
    successes = [f"{finding.aim} ({finding.gained})" for finding in findings if not finding.contained]
    if successes:
        return Attempt(None, findings, f"At level {level} student code could {'; '.join(successes)}.")
    return Attempt(sandbox, findings)


def _lines() -> Iterator[str]:
    attempts = {level: _attempt(level) for level in ISOLATED}
    best = next((attempt.sandbox for attempt in attempts.values() if attempt.sandbox), None)
    if best:
        yield f"This machine has level {best.level}: {PROMISES[Level(best.level)].title}."
        yield from (f"  {note}" for note in best.notes)
    else:
        yield f"This machine has no isolation; grading is refused without {TRUST}."
    yield from ("", "Levels")
    for level, promise in PROMISES.items():
        yield f"  {level} {promise.title}: {_state(level, attempts)}"
        yield f"      needs {promise.needs}"
        yield f"      keeps out {promise.keeps_out}"
    for level, attempt in attempts.items():
        if attempt.findings:
            yield from ("", f"Attacks tried at level {level}; each must be refused")
            yield from (_outcome(finding) for finding in attempt.findings)


def _state(level: Level, attempts: dict[Level, Attempt]) -> str:
    if level in attempts:
        return "works here" if attempts[level].sandbox else attempts[level].failure
    return "not in this version" if not PROMISES[level].available else f"only with {TRUST}"


def _outcome(finding: Finding) -> str:
    return f"  refused    {finding.aim}" if finding.contained else f"  SUCCEEDED  {finding.aim}: {finding.gained}"
