"""Hidden checks and controls of exercise 03.2."""

from __future__ import annotations

from autograder.exercises.torchscript import make_it_scriptable as visible
from autograder.host.draw import Draw
from autograder.host.exercise import Check, Control, HiddenPart
from autograder.host.kinds.callable import Case


def _everything(draw: Draw, width: int) -> list[Case]:
    mask = (draw.normal(2, width) > 0).float()
    x = [draw.normal(2, width) for _ in range(6)]
    return [
        Case((x[0],), {"scale": 2.0}, label="with a scale"),
        Case((x[1], mask), {"scale": 3.0}, label="with mask and scale"),
        Case((x[2],), label="with nothing"),
        Case((x[3], mask), {"fresh": True}, label="with mask and fresh"),
        Case((x[4], None), {"scale": -1.0, "fresh": False}, label="with None, scale and fresh"),
        Case((x[5],), label="with nothing"),
    ]


def _broadcast(draw: Draw, width: int) -> list[Case]:
    """Masks of another shape than the value, and rank 3."""
    return [
        Case((draw.normal(2, 3, width), (draw.normal(width) > 0).float()), label="with a mask of rank 1")
        for _ in range(3)
    ]


REFERENCE = """
def make_recall(width, depth):
    class Recall(nn.Module):
        past: list[torch.Tensor]

        def __init__(self, width: int, depth: int):
            super().__init__()
            self.dense = nn.Linear(width, width)
            self.depth = depth
            self.past = []

        def forward(
            self, x, mask: torch.Tensor | None = None, scale: float = 1.0, fresh: bool = False
        ):
            value = self.dense(x) * scale
            if mask is not None:
                value = value * mask
            if fresh:
                self.past.clear()
            self.past.append(value)
            self.past = self.past[-self.depth:]
            total = torch.zeros_like(value)
            for earlier in self.past:
                total = total + earlier
            return total / len(self.past)

    return Recall(width, depth)
"""
LAST = "    return Recall(width, depth)"
TRACED = REFERENCE.replace(LAST, "    return torch.jit.trace(Recall(width, depth), (torch.ones(2, width),))")
SCRIPTED = REFERENCE.replace(LAST, "    return torch.jit.script(Recall(width, depth))")
FORGETS = REFERENCE.replace("            self.past.append(value)\n", "            self.past = [value]\n")
EAGER = (
    REFERENCE.replace(
        "x, mask: torch.Tensor | None = None, scale: float = 1.0, fresh: bool = False", "x, mask=None, **options"
    )
    .replace("* scale", "* options.get('scale', 1.0)")
    .replace("if fresh", "if options.get('fresh', False)")
)

HIDDEN = HiddenPart(
    checks=(
        Check("masks now and then, and None", "branches", 1.5, visible.agrees([(3, 3, visible.optional)])),
        Check("fresh forgets", "branches", 1, visible.agrees([(5, 4, visible.forgetting)])),
        Check(
            "all options together", "options together", 1, visible.agrees([(4, 3, _everything), (1, 1, _everything)])
        ),
        Check("masks that are broadcast", "shapes", 0.5, visible.agrees([(6, 2, _broadcast)])),
    ),
    controls=(
        Control("reference", REFERENCE, 10),
        Control(
            "scripted by the student",
            REFERENCE.replace("return Recall(", "return torch.jit.script(Recall(")[:-2] + "))\n",
            10,
        ),
        Control("traced", TRACED, 5, below=True),
        Control("not scriptable", EAGER, 0),
        Control("forgets", FORGETS, 6, below=True),
    ),
)
