"""Hidden checks and controls of exercise 03.6."""

from __future__ import annotations

from autograder.exercises.torchscript import limits as visible
from autograder.host.exercise import Check, Control, HiddenPart

REFERENCE = """
def which_limit(seen):
    if "upported" in seen["error"]:
        return "outside the language"
    if seen["error"]:
        return "unknown type"
    if not seen["same_on_others"]:
        return "frozen branch" if "boolean" in str(seen["warnings"]) else "frozen number"
    if not seen["same_in_evaluation"]:
        return "frozen mode"
    return "lost effect" if seen["calls_seen"] == 0 else "none"
"""
SILENCE_IS_GOLD = REFERENCE.replace('"frozen mode"', '"none"').replace(
    '"lost effect" if seen["calls_seen"] == 0 else ', ""
)

HIDDEN = HiddenPart(
    checks=(
        Check("traces without a warning", "silence", 0.8, visible.told_apart("silent traces")),
        Check("everything together", "everything", 0.8, visible.told_apart(*visible.SNIPPETS)),
    ),
    controls=(
        Control("reference", REFERENCE, 4),
        Control("silence is gold", SILENCE_IS_GOLD, 2.4),
        Control("always none", "def which_limit(seen):\n    return 'none'\n", 0),
    ),
    right_here={"text": "a name is a text already"},
)
