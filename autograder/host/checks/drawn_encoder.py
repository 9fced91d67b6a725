"""Names and numbers of an encoder that are drawn, so that nobody knows a model by heart.

No counter of a training step depends on what is drawn here: `nn.Identity` launches nothing, and a sum is a sum in
either order. Sizes are not drawn, since a student's work log compares the counters of several reports.
"""

from collections.abc import Mapping

from autograder.host.draw import Draw

SYLLABLES = ("ba", "co", "de", "fi", "lu", "mo", "ne", "pa", "ri", "so", "ta", "vu")
BLOCKS = (
    "attention",
    "projection",
    "attention_norm",
    "feed_forward",
    "feed_forward_norm",
    "idle_0",
    "idle_1",
    "idle_2",
)
PARTS = ("layers", *BLOCKS, "query", "key", "value", "dense", "dropout", "activation")
"""All parts that `schedule_models.Encoder` names."""


def drawn_names(draw: Draw, *parts: str) -> dict[str, str]:
    """Return a name of three random syllables for each of the parts, so that no list of names holds it."""
    words = ["".join(draw.sample(SYLLABLES, 3)) for _ in range(20)]
    return dict(zip(parts, draw.sample(sorted(set(words)), len(parts)), strict=True))


def drawn_encoder(draw: Draw) -> Mapping[str, object]:
    """Return arguments of `schedule_models.Encoder`: names of all parts, eps, dropout, and what else is free.

    eps is 2e-5 to 9e-3, dropout 0.15 to 0.4. In one of the two blocks the residual is the first term of its sum.
    """
    attention_first = draw.chance(0.5)
    return {
        "names": drawn_names(draw, *PARTS),
        "eps": float(f"{draw.integer(2, 9)}e-{draw.integer(3, 5)}"),
        "dropout": draw.integer(3, 8) / 20,
        "residual_first": (attention_first, not attention_first),
        "idle": tuple(draw.integer(1, 3) for _ in range(3)),
    }
