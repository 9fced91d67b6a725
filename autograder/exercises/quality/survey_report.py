"""Quality as a table for people, and as JSON."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict

from autograder.exercises.quality.survey import Quality

_HEAD = f"{'exercise':<26}{'reference':>10}{'controls':>10}{'mutants':>14}{'visible':>9}{'all':>6}{'seconds':>9}"


def quality_text(qualities: Sequence[Quality], *, survivors: bool = True) -> str:
    """A line an exercise, then what must not be, then the mutants that no check noticed."""
    lines = [_HEAD, *map(_line, qualities)]
    for quality in qualities:
        lines += [f"{quality.exercise}: {sentence}" for sentence in quality.failures]
    if survivors:
        for quality in qualities:
            missed = [m.mutant for m in quality.mutants if not m.killed_by]
            lines += [f"{quality.exercise}: no check notices {mutant}" for mutant in missed]
    return "\n".join(lines)


def _line(quality: Quality) -> str:
    reference = f"{quality.reference_points:g}/{quality.max_points:g}"
    stated = f"{sum(c.as_stated for c in quality.controls)}/{len(quality.controls)}"
    tried = f"{len(quality.mutants)}/{quality.of_mutants}"
    return (
        f"{quality.exercise:<26}{reference:>10}{stated:>10}{tried:>14}"
        f"{quality.visible_score:>9.0%}{quality.score:>6.0%}{quality.grading_s:>9.1f}"
    )


def quality_json(qualities: Sequence[Quality]) -> str:
    """All that is known, for programs."""
    return json.dumps(
        [{**asdict(q), "visible_score": q.visible_score, "score": q.score, "failures": q.failures} for q in qualities],
        indent=2,
    )
