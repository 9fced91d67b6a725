"""Hidden checks and controls of exercise 07.3."""

import torch

from autograder.exercises.dynamo.tame_recompiles import REFERENCES, at_lengths, plans
from autograder.exercises.hidden.answer_files import Answers
from autograder.host.exercise import Check, HiddenPart
from autograder.host.kinds.captured import captures

ANSWERS = Answers(__name__)

HIDDEN = HiddenPart(
    checks=(
        Check(
            "other lengths, even and odd",
            "other lengths",
            1.5,
            captures(*(at_lengths(name, (3, 8, 64, 127, 129)) for name in REFERENCES)),
        ),
        Check(
            "double precision, with gradients",
            "gradients",
            0.9,
            captures(
                *(at_lengths(name, (6, 9), dtype=torch.float64) for name in ("pair_means", "decayed_sum")),
                gradients=True,
            ),
        ),
        Check("long sweeps: what stays open", "what to open", 0.8, plans("open", (15, 20, 25, 2, 3, 2, 3, 4, 30))),
        Check("long sweeps: how many graphs", "how many graphs", 0.8, plans("graphs", (15, 20, 25, 2, 3, 2, 3, 4, 30))),
    ),
    controls=(ANSWERS.reference(10), ANSWERS.file("as they were", 0)),
)
