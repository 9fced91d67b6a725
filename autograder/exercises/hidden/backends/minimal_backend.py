"""Hidden checks and controls of exercise 10.1."""

from typing import Any

from autograder.exercises.backends.minimal_backend import by_name, open_batch, replaced, several_outputs, whole
from autograder.exercises.hidden.answer_files import Answers
from autograder.host.exercise import Check, Control, HiddenPart

ANSWERS = Answers(__name__)
SHAPE = "tuple(getattr(value, 'shape', ()))"
SLIPS: tuple[Any, ...] = (
    ("all inputs are tensors", 6.5, (SHAPE, "tuple(value.shape)")),
    (
        "open sizes are left out",
        6.5,
        (" for value in example_inputs]", " for value in example_inputs if hasattr(value, 'shape')]"),
    ),
    ("no graph is kept", 0, ("graphs.append(", "print(")),
    ("no absolute value", 0, ("torch.abs", "torch.neg")),
    ("shapes are ranks", 5.5, (SHAPE, "(len(getattr(value, 'shape', ())),)")),
    ("the divisor comes first", 0, ("(x, below)", "(below, x)")),
    ("open for all sizes at once", 0, ("backend=backend)", "backend=backend, dynamic=True)")),
    ("graphs of all time", 2, ("def approximate", "graphs = []\n\ndef approximate"), ("    graphs = []\n", "")),
)
"""Likely slips: name, marks, and edits of the reference."""

HIDDEN = HiddenPart(
    checks=(
        Check("inputs by name", "inputs by name", 1, replaced(by_name)),
        Check("an open batch size", "batch sizes", 1.5, open_batch),
        Check(
            "one program after the other, and again", "no leftovers", 1, replaced(whole, several_outputs, again=True)
        ),
    ),
    controls=(
        ANSWERS.reference(8),
        *ANSWERS.styles(8),
        *(ANSWERS.edited(name, marks, *edits) for name, marks, *edits in SLIPS),
        ANSWERS.edited("only the first tanh", 5, ("target=torch.tanh)", "target=torch.tanh)[:1]"), below=True),
        ANSWERS.edited("never reset", 8, ("torch._dynamo.reset()", "pass")),
        ANSWERS.edited("without recompile", 8, ("graph_module.recompile()", "pass")),
        ANSWERS.file("traced, not captured", 0),
        ANSWERS.file("changed when it runs", 8, below=True),
        ANSWERS.file("unchanged", 0),
        Control(
            "no graphs", "def approximate(function, calls):\n    return [function(*a, **k) for a, k in calls], []\n", 0
        ),
    ),
)
