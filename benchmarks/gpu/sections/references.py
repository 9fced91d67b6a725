"""Grade reference solutions whose speed is measured, as a grader with a GPU does: none may lose a point or a badge."""

import time
from typing import Any

from autograder.exercises import find
from autograder.exercises.quality.controls import controls
from autograder.host.exercise import REFERENCE
from autograder.host.grading import graded_parts
from autograder.host.judge import judge
from autograder.host.records import Badge, ExerciseRecord
from autograder.host.sandbox import Sandbox, open_sandbox
from benchmarks.gpu.running import INTERPRETER, interpreter_obstacle
from benchmarks.gpu.section import Notes, Run, Section

MEASURED = (
    *("17_optimise_step", "12_layer_norm", "12_long_softmax", "12_masked_blend", "12_bias_quick_gelu"),
    *("12_block_end_forward", "05_scale_dropout_rms_norm_pass", "05_bias_silu_pass", "06_fuse_block_ends"),
    *("09_reach_byte_minimum", "06_schedule_encoder"),
)
"""Exercises with a measured ratio, badge or bonus; the first ones tell most, should the time end."""
WITH_LOOPS = ("12_long_softmax", "12_layer_norm")  # over tiles, in the kernels of the references
ONE_S = 25.0  # of one grading: new processes, compilation, and a few hundred pairs


def run(around: Run) -> None:
    """Note the record of each reference."""
    around.note("dry", around.dry)
    around.note("graded", {})
    sandbox = open_sandbox("auto", device=around.device)
    obstacle = interpreter_obstacle()
    for exercise_id in MEASURED[-1:] if around.dry else MEASURED:
        if around.left_s < ONE_S:
            _add(around, exercise_id, {"left_out": "no time was left"})
        elif obstacle and exercise_id in WITH_LOOPS:
            _add(around, exercise_id, {"left_out": obstacle})
        else:
            _add(around, exercise_id, _graded(exercise_id, sandbox))


def _add(around: Run, exercise_id: str, found: dict[str, Any]) -> None:
    around.note("graded", {**around.notes["graded"], exercise_id: found})


def _graded(exercise_id: str, sandbox: Sandbox) -> dict[str, Any]:
    start_s = time.monotonic()
    (answer,) = [each.answer for each in controls(exercise_id) if each.name == REFERENCE]
    exercise = find(exercise_id)
    seed = time.time_ns()
    record = judge(exercise, graded_parts(exercise, {exercise_id: answer}), sandbox=sandbox, seed=seed)
    found = {"points": record.points, "max_points": record.max_points, "seconds": time.monotonic() - start_s}
    return {**found, "seed": seed, "lost": _lost(record), "measured": _measured(record)}


def _lost(record: ExerciseRecord) -> list[str]:
    lost = [f"{check.name}: {check.message}" for check in record.checks if check.points < check.max_points]
    flags = [*(record.speed.flags if record.speed else ()), *(record.badge.flags if record.badge else ())]
    return [*([record.message] if record.message else []), *lost, *flags]


def _measured(record: ExerciseRecord) -> dict[str, Any]:
    found: dict[str, Any] = {}
    if record.speed is not None:
        speed = record.speed
        found |= {"verdict": str(speed.verdict), "ratio": speed.ratio, "low": speed.ratio_low, "high": speed.ratio_high}
        found |= {"full": speed.full, "answer_us": speed.answer_us, "baseline_us": speed.baseline_us}
        found |= {"pairs": speed.pairs, "attempts": speed.attempts}
    if record.badge is not None:
        badge = record.badge
        found |= {"badge": str(badge.badge or "none"), "share": badge.share, "why": badge.reason}
        found |= {"answer_us": badge.answer_us, "copy_us": badge.copy_us}
    if record.bonus is not None:
        found |= {"bonus": record.bonus.points, "why": record.bonus.reason}
    return found


def failures(notes: Notes) -> list[str]:
    """Return a sentence for each reference that lost points, or is flagged for a person."""
    graded = notes.get("graded", {}).items()
    return [
        f"reference {name}: {one['points']:g} of {one['max_points']:g} points; {' '.join(one['lost'])}"
        for name, one in graded
        if "left_out" not in one and (one["points"] < one["max_points"] or one["lost"])
    ]


def missed(notes: Notes) -> list[str]:
    """Return a sentence for each reference without the highest badge, or that was not graded."""
    found = []
    for name, one in notes.get("graded", {}).items():
        badge = one.get("measured", {}).get("badge", str(Badge.GOLD))
        if badge != str(Badge.GOLD) and not notes.get("dry"):
            found.append(f"reference {name}: badge {badge}, {one['measured']['share']:.2f} of a copy's bandwidth")
        if "left_out" in one and INTERPRETER not in one["left_out"]:
            found.append(f"reference {name}: not graded, {one['left_out']}")
    return found


def as_markdown(notes: Notes) -> str:
    """Return a row for each reference."""
    lines = ["| reference | points | measured | time |", "|---|---|---|---|"]
    for name, one in notes.get("graded", {}).items():
        if "left_out" in one:
            lines.append(f"| {name} | – | {one['left_out']} | – |")
            continue
        points = f"{one['points']:g} of {one['max_points']:g}"
        lines.append(f"| {name} | {points} | {_told(one['measured'])} | {one['seconds']:.0f} s |")
    return "\n".join(lines)


def _told(measured: dict[str, Any]) -> str:
    told = []
    if "ratio" in measured:
        interval = "{ratio:.2f} times as fast ({low:.2f} to {high:.2f}; {full:.2f} earn all)".format(**measured)
        told.append(f"{measured['verdict']}: {interval}")
    if "badge" in measured:
        told.append("badge {badge}, {share:.2f} of a copy's bandwidth".format(**measured))
    if "bonus" in measured:
        told.append(f"bonus {measured['bonus']:g}")
    return "; ".join(told) or "nothing"


SECTION = Section(
    "References, graded on the device",
    order=45,
    budget_s=100,
    run=run,
    as_markdown=as_markdown,
    failures=failures,
    missed=missed,
)
