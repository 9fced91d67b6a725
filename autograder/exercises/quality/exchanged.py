"""The reference solution of one exercise, handed in for another: nobody is to pass by an answer to something else."""

from __future__ import annotations

from collections.abc import Mapping

from autograder.host.exercise import Exercise

_HANDED_IN = """
{reference}

{entry} = {other}
"""


def exchanged(asked: Exercise, other: Exercise, reference: str) -> Mapping[str, str]:
    """The parts of a hand-in for ``asked`` whose function is that of ``reference``, a solution of ``other``."""
    text = reference
    if other.entry_point != asked.entry_point:
        text = _HANDED_IN.format(reference=reference, entry=asked.entry_point, other=other.entry_point)
    return {"setup": f"{asked.setup}\n{other.setup}", f"answer {asked.id}": text}
