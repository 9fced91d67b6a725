"""Hidden checks and controls of exercise 14.1."""

import torch

from autograder.exercises.hidden.answer_files import Answers
from autograder.exercises.shipping.export_open import LARGEST, REFERENCES, at_sizes, each, ranges
from autograder.host.exercise import Check, HiddenPart
from autograder.host.kinds.captured import captures

ANSWERS = Answers(__name__)
BATCH, LENGTH = "Dim('batch', max=64)", "Dim('length', min=2, max=128)"

HIDDEN = HiddenPart(
    checks=(
        Check(
            "one sequence, the largest sizes, in double precision",
            "other sizes",
            1.5,
            captures(*(at_sizes(name, ((1, 6), (9, 6), LARGEST), dtype=torch.float64) for name in REFERENCES)),
        ),
        Check(
            "from an example of another size",
            "the example",
            1.5,
            captures(*(at_sizes(name, ((4, 22), (1, 8)), example=(2, 32)) for name in REFERENCES)),
        ),
        Check("all ranges", "ranges", 2, each(ranges, *REFERENCES, together=True)),
    ),
    controls=(
        ANSWERS.reference(12),
        *ANSWERS.styles(12),
        ANSWERS.file("ranges written afterwards", 12),
        ANSWERS.file("another tracer", 12),  # the task calls it fair
        ANSWERS.file("as they were", 0),
        ANSWERS.file("sizes declared and not open", 0),
        ANSWERS.edited("the length as an int", 6, ("table[:x.shape[1]]", "table[:int(x.shape[1])]")),
        ANSWERS.edited("a fixed batch", 7, ("kept = mask.unsqueeze(-1)", "kept = mask.view(3, -1, 1)")),
        ANSWERS.edited("no ranges", 9, (BATCH, "Dim.DYNAMIC"), (LENGTH, "Dim.DYNAMIC")),
        ANSWERS.edited("a batch without a largest size", 9, (BATCH, "Dim('batch')")),
        ANSWERS.edited("a length without a largest size", 6, (LENGTH, "Dim('length', min=2)")),
        ANSWERS.edited("a batch of two, the least of an export", 12, (BATCH, "Dim('batch', min=2, max=64)")),
        ANSWERS.edited("a dynamic batch with a range", 12, (BATCH, "Dim.DYNAMIC(min=1, max=64)")),
        ANSWERS.edited("a batch of at least three", 6, (BATCH, "Dim('batch', min=3, max=64)")),
        ANSWERS.edited("a batch of up to 65", 9, (BATCH, "Dim('batch', max=65)")),
        ANSWERS.edited("only the batch is open", 3, ("{0: batch, 1: length}", "{0: batch}")),
        ANSWERS.edited("any length for halves", 7, ("1: 2 * half", "1: length")),
        ANSWERS.edited("halves of two and more", 12, ("Dim('half', min=1, max=64)", "Dim('half', min=2, max=64)")),
        ANSWERS.edited("halves of three and more", 10, ("Dim('half', min=1, max=64)", "Dim('half', min=3, max=64)")),
        ANSWERS.edited("halves from automatic sizes", 10, ("1: 2 * half", "1: Dim.AUTO")),
        ANSWERS.edited("mean over all tokens", 9.5, ("(x * kept).sum(1) / kept.sum(1)", "(x * kept).mean(1)")),
        ANSWERS.edited(
            "the module in place of its program",
            7,
            ("export(Pooled(), (x, mask), dynamic_shapes=(sizes, sizes))", "Pooled()"),
        ),
        ANSWERS.edited("neighbours", 9.5, ("x[:, :middle] * x[:, middle:]", "x[:, ::2] * x[:, 1::2]")),
        ANSWERS.edited("no halves", 7, ("'halves': lambda", "'half': lambda")),
    ),
)
