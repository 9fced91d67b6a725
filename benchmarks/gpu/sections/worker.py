"""Run a graph with a fused operator in a worker at this machine's real level of isolation, under the judge's clock.

A sandboxed worker sees little of the machine: this is the first place where the driver's library, Triton's compiler or
the assigned GPU would be missing. Each result is compared with the reference.
"""

import time
from typing import Any

import torch
from torch.nn import functional as F

from autograder.host.artifacts import Artifact
from autograder.host.clock.contest import contest
from autograder.host.clock.trial import Plan
from autograder.host.draw import Draw
from autograder.host.sandbox import Sandbox, open_sandbox
from autograder.host.speed import Speed
from autograder.host.traced import Program, TensorSpec, traced
from benchmarks.gpu.section import Notes, Run, Section
from course_lib.kernels import bias_silu

LEAST_RATIO = 1.3  # of the ideal 2: the fused operator moves half the bytes
PARTS = ("first worker", "after preparing for lowering")


def programs(rows: int, columns: int) -> tuple[Program, Program]:
    """Return bias and SiLU as separate operators and as a fused one."""
    inputs = (TensorSpec((rows, columns)), TensorSpec((columns,)))

    def separate(x: torch.Tensor, bias: torch.Tensor) -> torch.Tensor:
        return F.silu(x + bias)

    def fused(x: torch.Tensor, bias: torch.Tensor) -> torch.Tensor:
        out: torch.Tensor = bias_silu(x, bias)
        return out

    return Program("bias and SiLU", lambda: separate, inputs, 0), Program("bias_silu", lambda: fused, inputs, 1)


def trial(around: Run, sandbox: Sandbox) -> dict[str, Any]:
    """Time the fused graph against the separate one in new workers; every output is compared."""
    separate, fused = programs(*((64, 32) if around.dry else (16_384, 1024)))
    draw = Draw(time.time_ns(), "worker")
    graph = traced(fused, draw)
    artifact = Artifact(graph.graph, graph.tensors)
    of = contest(Speed(separate, 2.0), draw, sandbox, 60.0, artifact=artifact, device=around.device)
    found = of.trial(Plan(max_pairs=9, window_us=300.0 if around.dry else 2_000.0, tries=1))
    return {"ratio": found.ratio, "answer_us": found.answer_us, "baseline_us": found.baseline_us}


def run(around: Run) -> None:
    """Note the level, and the trial in the first workers and in workers of a zygote that prepared for lowering."""
    around.note("dry", around.dry)
    try:
        sandbox = open_sandbox("auto", device=around.device)
    except Exception as error:  # the reason is the result
        around.note("failed", f"no sandbox has the device: {error}")
        return
    around.note("level", sandbox.level)
    around.note("notes", list(sandbox.notes))
    for part in PARTS:
        try:
            around.note(part, trial(around, sandbox))
        except Exception as error:
            around.note("failed", f"{part}: {type(error).__name__}: {error}")
            return
        sandbox.expect("graphs", "lowering")


def failures(notes: Notes) -> list[str]:
    """Return the sentence on what failed."""
    return [notes["failed"]] if "failed" in notes else []


def missed(notes: Notes) -> list[str]:
    """Return a sentence for each part in which the fused operator was not faster; the target is for CUDA."""
    parts = () if notes.get("dry") else [part for part in PARTS if part in notes]
    return [
        f"worker, {part}: the fused operator is {notes[part]['ratio']:.2f} times as fast, not {LEAST_RATIO}"
        for part in parts
        if notes[part]["ratio"] < LEAST_RATIO
    ]


def as_markdown(notes: Notes) -> str:
    """Return the level and each trial."""
    lines = [f"- level {notes['level']}" if "level" in notes else "- no level", *failures(notes)]
    lines += [f"- {note}" for note in notes.get("notes", [])]
    for part in PARTS:
        if part in notes:
            one = notes[part]
            times = f"{one['answer_us']:.1f} µs against {one['baseline_us']:.1f} µs"
            lines.append(f"- {part}: right results, {one['ratio']:.2f} times as fast ({times})")
    return "\n".join(lines)


SECTION = Section(
    "A worker with the device",
    order=20,
    budget_s=65,
    run=run,
    as_markdown=as_markdown,
    failures=failures,
    missed=missed,
)
