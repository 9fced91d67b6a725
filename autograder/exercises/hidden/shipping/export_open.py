"""Hidden checks and controls of exercise 14.1."""

import torch

from autograder.exercises.hidden.answer_files import Answers
from autograder.exercises.shipping.export_open import LARGEST, LEAST, REFERENCES, at_sizes, each, ranges
from autograder.host.exercise import Check, HiddenPart
from autograder.host.kinds.captured import captures

ANSWERS = Answers(__name__)
BATCH, LENGTH = "Dim('batch', max=64)", "Dim('length', min=2, max=128)"

HIDDEN = HiddenPart(
    checks=(
        Check(
            "one sequence, the largest sizes, in double precision",
            "other sizes",
            1.7,
            captures(
                *(at_sizes(name, ((1, 6), (9, LEAST[name][1]), LARGEST), dtype=torch.float64) for name in REFERENCES)
            ),
        ),
        Check(
            "from an example of another size",
            "the example",
            1.5,
            captures(*(at_sizes(name, ((4, 22), (1, 8)), example=(2, 32)) for name in REFERENCES)),
        ),
        Check("all ranges", "ranges", 1.8, each(ranges, *REFERENCES, together=True)),
    ),
    controls=(
        ANSWERS.reference(12),
        *ANSWERS.styles(12),
        ANSWERS.file("as they were", 0),
        ANSWERS.file("sizes declared and not open", 0),
        ANSWERS.edited("the length as an int", 6.133333, ("table[:x.shape[1]]", "table[:int(x.shape[1])]")),
        ANSWERS.edited("a fixed batch", 7.133333, ("kept = mask.unsqueeze(-1)", "kept = mask.view(3, -1, 1)")),
        ANSWERS.edited("no ranges", 9.2, (BATCH, "Dim.DYNAMIC"), (LENGTH, "Dim.DYNAMIC")),
        ANSWERS.edited("a batch without a largest size", 9.2, (BATCH, "Dim('batch')")),
        ANSWERS.edited("a length without a largest size", 6.133333, (LENGTH, "Dim('length', min=2)")),
        ANSWERS.edited("a batch of at least two", 9.2, (BATCH, "Dim('batch', min=2, max=64)")),
        ANSWERS.edited("only the batch is open", 5.633333, ("{0: batch, 1: length}", "{0: batch}")),
        ANSWERS.edited("any length for halves", 7.133333, ("1: 2 * half", "1: length")),
        ANSWERS.edited("halves of two and more", 12, ("Dim('half', min=1, max=64)", "Dim('half', min=2, max=64)")),
        ANSWERS.edited("halves of three and more", 10.2, ("Dim('half', min=1, max=64)", "Dim('half', min=3, max=64)")),
        ANSWERS.edited("halves from automatic sizes", 10.2, ("1: 2 * half", "1: Dim.AUTO")),
        ANSWERS.edited("mean over all tokens", 9.433333, ("(x * kept).sum(1) / kept.sum(1)", "(x * kept).mean(1)")),
        ANSWERS.edited(
            "the module in place of its program",
            7.133333,
            ("export(Pooled(), (x, mask), dynamic_shapes=(sizes, sizes))", "Pooled()"),
        ),
        ANSWERS.edited("neighbours", 9.433333, ("x[:, :middle] * x[:, middle:]", "x[:, ::2] * x[:, 1::2]")),
        ANSWERS.edited("no halves", 7.133333, ("'halves': lambda", "'half': lambda")),
    ),
)
