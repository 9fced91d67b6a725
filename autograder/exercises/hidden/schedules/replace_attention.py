"""Hidden checks and controls of exercise 06.5."""

from __future__ import annotations

from dataclasses import replace

from autograder.exercises.schedules.replace_attention import replaced
from autograder.host.exercise import Check, Control, HiddenPart
from autograder.host.kinds.schedule import schedules

MODE = "Ask for `self.training` in forward, each time: a model changes its mode after it was scheduled."

REFERENCE = """
class OneCall(nn.Module):
    def __init__(self, old):
        super().__init__()
        self.query, self.key, self.value = old.query, old.key, old.value
        self.sizes, self.p = (old.num_heads, old.head_size), old.dropout.p

    def forward(self, hidden, mask):
        query, key, value = (
            part(hidden).unflatten(-1, self.sizes).transpose(1, 2) for part in (self.query, self.key, self.value)
        )
        p = float(self.p) if self.training else 0.0
        context = F.scaled_dot_product_attention(query, key, value, attn_mask=mask, dropout_p=p)
        return context.transpose(1, 2).flatten(2)


def replace_attention(schedule):
    for path, module in list(schedule.mod.named_modules()):
        if type(module).__name__ == "SelfAttention":
            schedule[path].replace(OneCall(module))
    return schedule
"""
WITHOUT_MASK = REFERENCE.replace("attn_mask=mask, ", "")
ALWAYS_DROPS = REFERENCE.replace("float(self.p) if self.training else 0.0", "float(self.p)")
NEVER_DROPS = REFERENCE.replace("float(self.p) if self.training else 0.0", "0.0")
SCALED_TWICE = REFERENCE.replace("(query, key", "(query / self.sizes[1] ** 0.5, key")
NEW_NAMES = REFERENCE.replace("self.query, self.key, self.value =", "self.q, self.k, self.v =").replace(
    "(self.query, self.key, self.value)", "(self.q, self.k, self.v)"
)
ASKED_TOO_EARLY = ALWAYS_DROPS.replace("old.dropout.p\n", "old.dropout.p * old.training\n")
FIRST = REFERENCE.replace(
    "            schedule[path].replace(OneCall(module))\n",
    ("            schedule[path].replace(OneCall(module))\n            break\n"),
)

HIDDEN = HiddenPart(
    checks=(
        Check("another number of heads", "odd sizes", 0.8, schedules([replaced("with one head", heads=1)])),
        Check(
            "tied weights",
            "tied weights",
            0.8,
            schedules([replaced("with one matrix for query and key", 2, tied=True)]),
        ),
        Check(
            "evaluation drops nothing",
            "evaluation mode",
            0.8,
            schedules(
                [
                    replaced("with dropout, in evaluation mode", dropout=0.5),
                    replace(
                        replaced("scheduled in training and then switched to evaluation", dropout=0.5),
                        switched=True,
                        reason=MODE,
                    ),
                ]
            ),
        ),
        Check(
            "gradients",
            "gradients",
            0.8,
            schedules([replaced("with LayerNorm first", norm_first=True, training=True)], gradients=True),
        ),
    ),
    controls=(
        Control("reference", REFERENCE, 8),
        Control("without the mask", WITHOUT_MASK, 8, below=True),
        Control("drops in evaluation, too", ALWAYS_DROPS, 8, below=True),
        Control("never drops", NEVER_DROPS, 8, below=True),
        Control("asks for the mode too early", ASKED_TOO_EARLY, 8, below=True),
        Control("scaled twice", SCALED_TWICE, 8, below=True),
        Control("parameters under other names", NEW_NAMES, 0),
        Control("the first layer only", FIRST, 8, below=True),
    ),
)
