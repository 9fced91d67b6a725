"""Hidden checks and controls of exercise 05.7."""

from __future__ import annotations

from autograder.exercises.fx_rewrite import break_a_pass as visible
from autograder.host.exercise import Check, Control, HiddenPart
from autograder.host.kinds.counterexample import disproves

REFERENCE = """
def counterexample(question):
    x = -torch.arange(1.0, 5.0)
    if question["pass"] == "drop_dead_code":
        return writing(question["overlooks"]), x
    if question["pass"] == "share_equal":
        return PROGRAMS[question["overlooks"]], x, x * x
    return Scaled(question["forgets"], question["above"] + 1), x

def writing(method):
    def program(x):
        h = x * 1
        getattr(h, method)()
        return h
    return program

def rewritten(x, y):
    before = torch.exp(x)
    x.add_(1)
    return before - torch.exp(x)

PROGRAMS = {
    "keywords": lambda x, y: torch.add(x, y, alpha=2) - torch.add(x, y, alpha=3),
    "numbers": lambda x, y: torch.mul(x, 2) - torch.mul(x, 3),
    "order": lambda x, y: (x - y) * (y - x),
    "writes": rewritten,
}

class Scaled(nn.Module):
    def __init__(self, forgets, factor):
        super().__init__()
        self.linear, self.forgets, self.factor = nn.Linear(4, 4), forgets, factor

    def forward(self, x):
        h = self.linear(x)
        if self.forgets == "other calls":
            return self.linear(x + 1) - h * self.factor
        return h - h * self.factor if self.forgets == "other readers" else h * self.factor
"""

HIDDEN = HiddenPart(
    checks=(
        Check("dead code with other unknown methods", "dead code", 0.8, disproves(visible.dead_code(4))),
        Check("sharing across numbers and order", "sharing", 1.2, disproves(visible.sharing("numbers", "order"))),
        Check(
            "folding where somebody else calls or reads",
            "folding",
            1.2,
            disproves(visible.folding("other calls", "other readers")),
        ),
    ),
    controls=(
        Control("reference", REFERENCE, 8),
        Control("bias and keywords only", REFERENCE.replace('"numbers"', '"n"').replace('"order"', '"o"'), 6.8),
        Control(
            "the example of every text book",
            "def counterexample(question):\n"
            "    def program(x):\n"
            "        h = x * 1\n"
            "        h.relu_()\n"
            "        return h\n"
            "    return program, -torch.ones(4)\n",
            2,
            below=True,
        ),
    ),
    equivalent={
        "line 7: x * x -> x / x": "another counterexample",
        "line 8: 1 -> 2": "a larger factor is folded, too",
        "line 12: 1 -> 2": "another counterexample",
        "line 12: x * 1 -> x / 1": "another counterexample",
        "line 19: 1 -> 2": "another counterexample",
        "line 20: before - torch.exp(x) -> before + torch.exp(x)": "another counterexample",
        "line 23: 3 -> 4": "another counterexample",
        "line 23: torch.add(x, y, alpha=2) -> torch.add(x, y)": "another counterexample",
        "line 23: torch.add(x, y, alpha=3) -> torch.add(x, y)": "another counterexample",
        "line 24: 3 -> 4": "another counterexample",
        "line 24: torch.mul(x, 2) - torch.mul(x, 3) -> torch.mul(x, 2) + torch.mul(x, 3)": "another counterexample",
        "line 25: (x - y) * (y - x) -> (x - y) / (y - x)": "another counterexample",
        "line 37: 1 -> 2": "another counterexample",
        "line 37: x + 1 -> x - 1": "another counterexample",
        "line 38: h - h * self.factor -> h + h * self.factor": "another counterexample",
    },
)
