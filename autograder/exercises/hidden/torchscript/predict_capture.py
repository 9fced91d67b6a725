"""Hidden checks and controls of exercise 03.1."""

from __future__ import annotations

from autograder.exercises.torchscript import predict_capture as visible
from autograder.host.exercise import Check, Control, HiddenPart


def _check(group: str, points: float) -> Check:
    asked = visible.questions(group, largest=40, rounds=3)
    return Check(f"{group}, up to forty rows", group, points, visible.predicted(asked))


REFERENCE = """
def predict(question):
    program, example, later = question["program"], question["example"], question["later"]
    if question["capture"] == "script":
        return "fails" if program in ("through_numpy", "with_options") else "agrees"
    same_sum = example["sum"] == later["sum"]
    if program == "branch_on_value":
        return "agrees" if (example["sum"] > 0) == (later["sum"] > 0) else "differs"
    if program == "branch_on_rows":
        return "agrees" if (example["rows"] > 4) == (later["rows"] > 4) else "differs"
    if program == "add_up_rows" and example["rows"] != later["rows"]:
        return "differs" if example["rows"] < later["rows"] else "fails"
    if program == "through_numpy" and example["rows"] != later["rows"]:
        return "fails"
    if program == "divide_by_len":
        return "agrees" if example["rows"] == later["rows"] else "differs"
    if program in ("scale_by_item", "through_numpy"):
        return "agrees" if same_sum else "differs"
    return "agrees"
"""
TRUSTING = "def predict(question):\n    return 'agrees'\n"
SHAPES_ARE_FROZEN = REFERENCE.replace('program == "divide_by_len"', 'program in ("divide_by_len", "divide_by_rows")')

HIDDEN = HiddenPart(
    checks=(_check("branches", 1), _check("rows", 1.2), _check("numbers outside torch", 1)),
    controls=(
        Control("reference", REFERENCE, 8),
        Control("always agrees", TRUSTING, 0),
        Control("always fails", TRUSTING.replace("agrees", "fails"), 0),
        Control("sizes are frozen too", SHAPES_ARE_FROZEN, 5.2),
    ),
    right_here={"text": "an outcome is a text already"},
    equivalent={
        f"line 8: {change}": "no question has a sum of 0"
        for change in (
            "example['sum'] > 0 -> example['sum'] >= 0",
            "later['sum'] > 0 -> later['sum'] >= 0",
        )
    }
    | {"line 12: example['rows'] < later['rows'] -> example['rows'] <= later['rows']": "equal rows never come there"},
)
