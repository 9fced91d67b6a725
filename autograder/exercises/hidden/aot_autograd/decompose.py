"""Hidden checks and controls of exercise 08.2."""

from __future__ import annotations

import torch

from autograder.exercises.aot_autograd import decompose as visible
from autograder.host.exercise import Check, Control, HiddenPart

wanted, in_primitives = visible.wanted, visible.in_primitives

REFERENCE = '''
def decomposed():
    """LayerNorm and GELU in primitives."""

    def wide(x):
        return x.to(torch.float32) if x.dtype in (torch.bfloat16, torch.float16) else x

    def layer_norm(x, weight, bias):
        h = wide(x)
        centred = h - h.mean(-1, keepdim=True)
        variance = (centred * centred).mean(-1, keepdim=True)
        normed = centred * torch.rsqrt(variance + 1e-5)
        return (normed * wide(weight) + wide(bias)).to(x.dtype)

    def gelu(x):
        h = wide(x)
        return (0.5 * h * (1 + torch.erf(h / math.sqrt(2)))).to(x.dtype)

    return {"layer_norm": layer_norm, "gelu": gelu}
'''
BF16 = torch.bfloat16

HIDDEN = HiddenPart(
    checks=(
        Check(
            "16-bit inputs",
            "precision",
            2,
            visible.rounds_once(*wanted("layer_norm", [(16, 64)], BF16), *wanted("gelu", [(16, 64)], BF16)),
        ),
        Check(
            "empty and odd sizes",
            "sizes",
            1.4,
            in_primitives(
                *wanted("layer_norm", [(0, 8), (3, 1), (129, 127)]), *wanted("gelu", [(0, 8), (3, 1), (129, 127)])
            ),
        ),
        Check(
            "a mean that is large",
            "large numbers",
            1.4,
            in_primitives(*wanted("layer_norm", [(4, 16)], shift=4096.0), *wanted("gelu", [(4, 16)], shift=4096.0)),
        ),
    ),
    controls=(
        Control("reference", REFERENCE, 12),
        Control(
            "the originals",
            "def decomposed():\n"
            "    return {'layer_norm': lambda x, w, b: F.layer_norm(x, x.shape[-1:], w, b), 'gelu': F.gelu}\n",
            0,
        ),
        Control(
            "variance in one pass",
            REFERENCE.replace(
                "(centred * centred).mean(-1, keepdim=True)",
                "(h * h).mean(-1, keepdim=True) - h.mean(-1, keepdim=True) ** 2",
            ),
            12,
            below=True,
        ),
        Control("in the inputs' precision", REFERENCE.replace("x.to(torch.float32) if", "x if"), 10),
    ),
    right_here={"one precision lower": "it leaves 16 bits alone, and there it is right"},
)
