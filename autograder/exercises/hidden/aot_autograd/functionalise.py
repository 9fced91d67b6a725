"""Hidden checks and controls of exercise 08.1."""

from autograder.exercises.aot_autograd.functionalise import PROGRAMS, functional
from autograder.exercises.hidden.answer_files import Answers, edited
from autograder.host.exercise import Check, HiddenPart

ANSWERS = Answers(__name__)
WITH_WRITES = edited(ANSWERS.text_of("as they were"), ("def functional(", "def programs("))

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
        ANSWERS.joined("matrices of the programs", 1.4, WITH_WRITES, ANSWERS.text_of("matrices of the programs")),
        # the task calls it fair
        ANSWERS.joined("decompositions of one's own", 8, WITH_WRITES, ANSWERS.text_of("decompositions of one's own")),
    ),
)
