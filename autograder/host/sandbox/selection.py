"""Select the strongest level of isolation that works on this machine."""

import copy
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from typing import Literal

from autograder.host.sandbox import probe_record
from autograder.host.sandbox.bubblewrap import Bubblewrap
from autograder.host.sandbox.compute_device import CPU, Device, find_device, set_visible_device
from autograder.host.sandbox.confined import Confined
from autograder.host.sandbox.levels import PROMISES, Level, SandboxError
from autograder.host.sandbox.plain import Plain
from autograder.host.sandbox.probe import Finding, probe
from autograder.host.sandbox.resource_limits import Limits
from autograder.host.sandbox.resources import find_hierarchy
from autograder.host.sandbox.sandbox import Sandbox

PROBED = (Level.ISOLATED_AND_LIMITED, Level.ISOLATED, Level.CONFINED, Level.CONFINED_SAME_USER)
TRUST = "--i-trust-this-code"
AUTO, GPU = "auto", "cuda"
KERNEL = "import torch\nassert torch.ones(1024, device='cuda').sum().item() == 1024\n"
KERNEL_S = 120.0


@dataclass(frozen=True)
class Attempt:
    """The result of trying a level."""

    sandbox: Sandbox | None
    findings: tuple[Finding, ...] = ()
    failure: str = ""
    """A sentence that says why there is no sandbox."""


def open_sandbox(
    level: int | Literal["auto"] = "auto", *, trust: bool = False, device: str = "cpu", measured: bool = False
) -> Sandbox:
    """Return the sandbox of a level, or the strongest one, after attacks on it have failed.

    The attacks take about a second. A level that withstood them is not attacked again before the next boot, unless the
    kernel, the user or the configuration changes; see `probe_record`. `trust` permits level 5, which isolates nothing.
    Without it, a machine that has no other level raises `SandboxError`. `device` is the workers' device: `cpu`,
    `cuda`, `cuda:N`, or `auto`, which is a GPU where a worker with it is as isolated as one without. With `measured`,
    the times of a CPU earn points.
    """
    sandbox = _automatic(level, trust) if device == AUTO else _opened(level, trust, device)
    if measured and not sandbox.measures:
        sandbox = copy.copy(sandbox)  # the opened one is kept for later callers
        sandbox.measures_on_cpu = True
    return sandbox


def _automatic(level: int | Literal["auto"], trust: bool) -> Sandbox:
    """Return a sandbox with a GPU, or one on the CPU whose notes say why a GPU that is there is not used."""
    usual = _opened(level, trust, CPU.name)
    try:
        find_device(GPU)
    except SandboxError:
        return usual
    try:
        with_gpu = _opened(level, trust, GPU)
    except SandboxError as error:
        reason = str(error)
    else:
        if with_gpu.level <= usual.level:
            return with_gpu
        reason = f"a worker with it has level {with_gpu.level:d} only."
    usual = copy.copy(usual)
    usual._notes = (*usual._notes, f"there is a GPU, and answers compute on the CPU: {reason}")
    return usual


def _opened(level: int | Literal["auto"], trust: bool, device: str) -> Sandbox:
    if level != "auto" and level not in PROMISES:
        raise SandboxError(f"There is no level {level!r}; levels go from 1 (strongest) to 5 (none).")
    found = find_device(device)
    set_visible_device(found)
    if level == Level.NONE:
        return _plain(trust, found)
    failures = []
    for each in PROBED:
        if level in ("auto", each):
            attempt = _attempt(each, found)
            if attempt.sandbox:
                return attempt.sandbox
            failures.append(attempt.failure)
    if level == "auto" and trust:
        return _plain(trust, found)
    reasons = " ".join(dict.fromkeys(failures))
    raise SandboxError(f"Student code cannot be isolated here. {reasons} ({TRUST} runs it with your rights instead.)")


def describe() -> str:
    """Return the output of `autograder sandbox`: this machine's level, all levels, and the result of each attack."""
    return "\n".join(_lines())


@cache
def _plain(trust: bool, device: Device) -> Sandbox:
    if not trust:
        raise SandboxError(f"Level 5 isolates nothing: student code runs with your rights. {TRUST} permits it.")
    sandbox = Plain(device)
    if failure := _kernel_failure(sandbox):
        raise SandboxError(failure)
    return sandbox


@cache
def _attempt(level: Level, device: Device = CPU) -> Attempt:
    """Return the sandbox of a level, on the record of an earlier probe if that still holds."""
    cold_because = None if device.cuda else probe_record.read(level)
    if cold_because is None:
        return _probed(level, device)
    try:
        sandbox = _build(level, device)
    except SandboxError as error:
        return Attempt(None, failure=str(error))
    if cold_because:
        sandbox.start_cold(cold_because)
    return Attempt(sandbox)


def _probed(level: Level, device: Device = CPU) -> Attempt:
    """Return the result of trying a level now, and record it if the level withstands all attacks."""
    try:
        sandbox = _build(level, device)
        findings = probe(sandbox)
    except SandboxError as error:
        return Attempt(None, failure=str(error))
    if successes := _successes(findings):
        return Attempt(None, findings, f"At level {level} student code could {successes}.")
    if failure := _kernel_failure(sandbox):
        return Attempt(None, findings, failure)
    if level in (Level.ISOLATED_AND_LIMITED, Level.ISOLATED):
        _probe_zygote(sandbox)
    probe_record.keep(level, sandbox.cold_because)
    return Attempt(sandbox, findings)


def _build(level: Level, device: Device) -> Sandbox:
    if sys.platform != "linux":
        raise SandboxError("Levels 1 to 4 need Linux.")
    if level in (Level.CONFINED, Level.CONFINED_SAME_USER):
        return Confined(level, device)
    hierarchy = find_hierarchy() if level == Level.ISOLATED_AND_LIMITED else None
    if level == Level.ISOLATED_AND_LIMITED and hierarchy is None:
        raise SandboxError("No control group can be made here.")
    return Bubblewrap(hierarchy, device)


def _kernel_failure(sandbox: Sandbox) -> str:
    """Return a sentence if its device is a GPU that runs no kernel, else ""; listing devices proves nothing."""
    if not sandbox.has_cuda:
        return ""
    with sandbox._start(KERNEL, Limits(wall_s=KERNEL_S)) as worker:
        ending = worker.end(grace_s=KERNEL_S)
    if ending.exit_code == 0:
        return ""
    said = (ending.output.strip().splitlines() or [ending.detail or ending.reason])[-1]
    return f"At level {sandbox.level:d} the device {sandbox._device.name} runs no kernel ({said})."


def _probe_zygote(sandbox: Sandbox) -> None:
    """Attack through a zygote as well: at these levels, different code isolates its children and cold workers."""
    try:
        if successes := _successes(probe(sandbox, forked=True)):
            sandbox.start_cold(f"in a child of the zygote, student code could {successes}.")
    except SandboxError as error:
        sandbox.start_cold(str(error))


def _successes(findings: Iterable[Finding]) -> str:
    return "; ".join(f"{finding.aim} ({finding.gained})" for finding in findings if not finding.contained)


def _lines() -> Iterator[str]:
    attempts = {level: _probed(level) for level in PROBED}
    best = next((attempt.sandbox for attempt in attempts.values() if attempt.sandbox), None)
    if best:
        yield f"This machine has level {best.level}: {PROMISES[Level(best.level)].title}."
        yield from (f"  {note}" for note in best.notes)
        if best.zygotes:
            yield "  workers are forked from a process that has imported torch, and isolated in the fork"
    else:
        yield f"This machine has no isolation; grading is refused without {TRUST}."
    yield from ("", "Levels")
    for level, promise in PROMISES.items():
        yield f"  {level} {promise.title}: {_state(level, attempts)}"
        yield f"      needs {promise.needs}"
        yield f"      keeps out {promise.keeps_out}"
        if level in attempts and (sandbox := attempts[level].sandbox) and sandbox is not best:
            yield from (f"      here: {note}" for note in sandbox.notes)
    for level, attempt in attempts.items():
        if attempt.findings:
            yield from ("", f"Attacks tried at level {level}; each must be refused")
            yield from (_outcome(finding) for finding in attempt.findings)


def _state(level: Level, attempts: dict[Level, Attempt]) -> str:
    if level in attempts:
        return "works here" if attempts[level].sandbox else attempts[level].failure
    return f"only with {TRUST}"


def _outcome(finding: Finding) -> str:
    return f"  refused    {finding.aim}" if finding.contained else f"  SUCCEEDED  {finding.aim}: {finding.gained}"
