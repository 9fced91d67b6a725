"""Hidden checks and controls of exercise 05.7."""

from autograder.exercises.fx_rewrite import break_a_pass as visible
from autograder.exercises.hidden.answer_files import Answers
from autograder.host.exercise import Check, HiddenPart
from autograder.host.kinds.counterexample import disproves

ANSWERS = Answers(__name__)

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
        ANSWERS.reference(8),
        ANSWERS.edited("bias and keywords only", 6.8, ("'numbers'", "'n'"), ("'order'", "'o'")),
        ANSWERS.file("the example of every text book", 2, below=True),
    ),
    equivalent={
        "x * x -> x / x": "another counterexample",
        "1 -> 2": "a larger factor is folded, too",
        "1 -> 2": "another counterexample",
        "x * 1 -> x / 1": "another counterexample",
        "1 -> 2": "another counterexample",
        "before - torch.exp(x) -> before + torch.exp(x)": "another counterexample",
        "3 -> 4": "another counterexample",
        "torch.add(x, y, alpha=2) -> torch.add(x, y)": "another counterexample",
        "torch.add(x, y, alpha=3) -> torch.add(x, y)": "another counterexample",
        "3 -> 4": "another counterexample",
        "torch.mul(x, 2) - torch.mul(x, 3) -> torch.mul(x, 2) + torch.mul(x, 3)": "another counterexample",
        "(x - y) * (y - x) -> (x - y) / (y - x)": "another counterexample",
        "1 -> 2": "another counterexample",
        "x + 1 -> x - 1": "another counterexample",
        "h - h * self.factor -> h + h * self.factor": "another counterexample",
    },
)
