"""Hidden checks and controls of exercise 08.1."""

from autograder.exercises.aot_autograd.functionalise import PROGRAMS, functional
from autograder.exercises.hidden.answer_files import Answers
from autograder.host.exercise import Check, HiddenPart

ANSWERS = Answers(__name__)

HIDDEN = HiddenPart(
    checks=(
        Check("a view of a view", "nested views", 2, functional("nested", rows=(4, 1))),
        Check("other numbers of rows", "other sizes", 1, functional(*PROGRAMS, rows=(1, 33))),
        Check("gradients through all of them", "gradients", 1, functional(*PROGRAMS, gradients=True)),
    ),
    controls=(
        ANSWERS.reference(8),
        ANSWERS.edited(
            "a row added by its index",
            8,
            ("torch.cat([x[:1] + 1, x[1:]])", "torch.index_add(x, 0, torch.tensor([0]), torch.ones_like(x[:1]))"),
        ),
        ANSWERS.file("as they were", 0),
        ANSWERS.file("matrices of the programs", 1.4),
        ANSWERS.file("decompositions of one's own", 8),  # the task calls it fair
    ),
)
