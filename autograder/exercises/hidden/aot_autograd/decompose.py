"""Hidden checks and controls of exercise 08.2."""

import torch

from autograder.exercises.aot_autograd.decompose import in_primitives, rounds_once, wanted
from autograder.exercises.hidden.answer_files import Answers
from autograder.host.exercise import Check, Control, HiddenPart

BF16 = torch.bfloat16

ANSWERS = Answers(__name__)

HIDDEN = HiddenPart(
    checks=(
        Check(
            "16-bit inputs",
            "precision",
            2,
            rounds_once(*wanted("layer_norm", [(16, 64)], BF16), *wanted("gelu", [(16, 64)], BF16)),
        ),
        Check(
            "empty and odd sizes",
            "sizes",
            1,
            in_primitives(
                *wanted("layer_norm", [(0, 8), (3, 1), (129, 127)]), *wanted("gelu", [(0, 8), (3, 1), (129, 127)])
            ),
        ),
        Check(
            "a mean that is large",
            "large numbers",
            2,
            in_primitives(*wanted("layer_norm", [(4, 16)], shift=4096.0), *wanted("gelu", [(4, 16)], shift=4096.0)),
        ),
    ),
    controls=(
        ANSWERS.reference(12),
        Control(
            "the originals",
            "def decomposed():\n"
            "    return {'layer_norm': lambda x, w, b: F.layer_norm(x, x.shape[-1:], w, b), 'gelu': F.gelu}\n",
            0,
        ),
        ANSWERS.edited(
            "taken from one",
            12,
            ("0.5 * h * (1 + torch.erf(h / math.sqrt(2)))", "h - 0.5 * h * (1 - torch.erf(h / math.sqrt(2)))"),
        ),
        ANSWERS.edited(
            "variance in one pass",
            12,
            (
                "(centred * centred).mean(-1, keepdim=True)",
                "(h * h).mean(-1, keepdim=True) - h.mean(-1, keepdim=True) ** 2",
            ),
            below=True,
        ),
        ANSWERS.file("references of PyTorch", 2),  # that of GELU
        ANSWERS.edited("sums for means", 12, ("h.mean(-1, keepdim=True)", "h.sum(-1, keepdim=True) / h.shape[-1]")),
        ANSWERS.edited("in the inputs' precision", 10, ("x.to(torch.float32) if", "x if")),
    ),
    right_here={"one precision lower": "it leaves 16 bits alone, and there it is right"},
)
