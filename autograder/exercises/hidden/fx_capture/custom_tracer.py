"""Hidden checks and controls of exercise 04.2."""

from __future__ import annotations

from autograder.exercises.fx_capture import custom_tracer as visible
from autograder.host.exercise import Check, Control, HiddenPart
from autograder.host.kinds.analysis import sees

rows, models, BELIEFS = visible.rows, visible.models, visible.BELIEFS

REFERENCE = """
def trace_keeping(model, leaves):
    class Keeping(fx.Tracer):
        def is_leaf_module(self, module, path):
            return type(module).__name__ in leaves or super().is_leaf_module(module, path)

    return fx.GraphModule(model, Keeping().trace(model))
"""
FORGETS_TORCH = REFERENCE.replace(" or super().is_leaf_module(module, path)", "")
BY_PATH = REFERENCE.replace("type(module).__name__ in leaves", 'path.endswith("attention")')
BLOCKS = REFERENCE.replace("in leaves", 'in ("Block", *leaves)')
FIRST_ONLY = REFERENCE.replace("in leaves", "in leaves[:1]")

HIDDEN = HiddenPart(
    checks=(
        Check("a part under another name", "names", 1, sees(rows, models({"blocks": 2, "name": "mixer"}), BELIEFS)),
        Check("a block that is called twice", "shared parts", 1, sees(rows, models({"blocks": 2, "shared": True}))),
        Check(
            "two classes to keep",
            "several classes",
            1.2,
            sees(rows, models({"routed": True, "leaves": ["Attention", "Router"]})),
        ),
    ),
    controls=(
        Control("reference", REFERENCE, 8),
        Control("inside torch.nn, too", FORGETS_TORCH, 0),
        Control("by path", BY_PATH, 8, below=True),
        Control("whole blocks", BLOCKS, 0),
        Control("the first class only", FIRST_ONLY, 8, below=True),
    ),
)
