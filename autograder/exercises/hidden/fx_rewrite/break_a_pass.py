"""Hidden checks and controls of exercise 05.7."""

from autograder.exercises.fx_rewrite import break_a_pass as visible
from autograder.exercises.hidden.answer_files import Answers
from autograder.host.exercise import Check, Control, HiddenPart
from autograder.host.kinds.counterexample import disproves

ANSWERS = Answers(__name__)

HIDDEN = HiddenPart(
    checks=(
        Check(
            "dead code with every unknown method",
            "dead code",
            1.5,
            disproves(visible.dead_code(len(visible.METHODS)), together=True),
        ),
        Check("sharing across numbers and order", "sharing", 1, disproves(visible.sharing("numbers", "order"))),
        Check(
            "folding where somebody else calls or reads",
            "folding",
            1,
            disproves(visible.folding("other calls", "other readers")),
        ),
    ),
    controls=(
        ANSWERS.reference(8),
        ANSWERS.edited(
            "numbers on which two methods write what is there", 7, ("-torch.arange", "torch.arange"), below=True
        ),
        ANSWERS.edited("bias and keywords only", 7, ("'numbers'", "'n'"), ("'order'", "'o'")),
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
    equivalent=dict.fromkeys(
        (
            "x * x -> x / x",
            "return (WithFactor(question['forgets'], question['above'] + 1), x): 1 -> 2",
            "lambda x: ((h := (x * 1)), getattr(h, method)())[0]: 1 -> 2",
            "x * 1 -> x / 1",
            "lambda x, y: torch.exp(x) - (x.add_(1), torch.exp(x))[1]: 1 -> 2",
            "torch.exp(x) - (x.add_(1), torch.exp(x))[1] -> torch.exp(x) + (x.add_(1), torch.exp(x))[1]",
            "lambda x, y: torch.add(x, y, alpha=2) - torch.add(x, y, alpha=3): 3 -> 4",
            "torch.add(x, y, alpha=2) -> torch.add(x, y)",
            "torch.add(x, y, alpha=3) -> torch.add(x, y)",
            "lambda x, y: torch.mul(x, 2) - torch.mul(x, 3): 3 -> 4",
            "torch.mul(x, 2) - torch.mul(x, 3) -> torch.mul(x, 2) + torch.mul(x, 3)",
            "(x - y) * (y - x) -> (x - y) / (y - x)",
            "return scaled if other is None else scaled - other(x + 1): 1 -> 2",
            "x + 1 -> x - 1",
            "scaled - other(x + 1) -> scaled + other(x + 1)",
        ),
        "another counterexample",
    ),
)
