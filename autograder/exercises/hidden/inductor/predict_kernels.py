"""Hidden checks and controls of exercise 09.1."""

from __future__ import annotations

from autograder.exercises.inductor import predict_kernels as visible
from autograder.host.exercise import Check, Control, HiddenPart

predicts = visible.predicts

REFERENCE = """
CALLS = ("product", "sort")


def predict_kernels(steps):
    kernels, calls, waiting, product_last, turned = 0, 0, False, False, False
    for step in steps:
        if step == "unused":
            continue
        if step in CALLS or step == "break":
            kernels += waiting
            calls += step in CALLS
            waiting = turned = False
        elif step not in ("transpose", "keep"):
            waiting = waiting or not (product_last and not turned and step in ("bias", "residual"))
        turned = turned != (step == "transpose")
        product_last = step == "product" or (step == "transpose" and product_last)
    return {"kernels": int(kernels + waiting), "calls": calls}
"""

HIDDEN = HiddenPart(
    checks=(
        Check("the kernels of long programs", "long programs", 2, predicts("kernels", visible.of_everything)),
        Check("the calls of long programs", "long programs", 1.2, predicts("calls", visible.of_everything)),
    ),
    controls=(
        Control("reference", REFERENCE, 8),
        Control("one kernel, always", "def predict_kernels(steps):\n    return {'kernels': 1, 'calls': 1}\n", 0),
        Control("dead code runs", REFERENCE.replace('if step == "unused":', 'if step == "none":'), 8, below=True),
    ),
    equivalent={
        "line 6: False -> True": "a product turns nothing, and without a product it is not asked",
        "line 15: waiting or not (product_last and (not turned) and (step in ('bias', 'residual'))) -> "
        "not (product_last and (not turned) and (step in ('bias', 'residual')))": "after a product, nothing waits",
    },
)
