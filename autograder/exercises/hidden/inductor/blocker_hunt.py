"""Hidden checks and controls of exercise 09.4."""

import torch

from autograder.exercises.hidden.answer_files import Answers
from autograder.exercises.inductor.blocker_hunt import BLOCKED, fuses, names, sized
from autograder.exercises.programs.loop_listings import BREAK, REASONS, Listing, drawn
from autograder.host.draw import Draw
from autograder.host.exercise import Check, HiddenPart


def _long(draw: Draw) -> list[Listing]:
    return [drawn(draw, draw.sample(REASONS[1:] * 2, n)) for n in (5, 6, 7, 8)]


def _several_graphs(draw: Draw) -> list[Listing]:
    return [drawn(draw, [*draw.sample(REASONS, 2), BREAK, *draw.sample(REASONS, 3)]) for _ in range(5)]


ANSWERS = Answers(__name__)

HIDDEN = HiddenPart(
    checks=(
        Check("`blockers` on long listings", "long listings", 1, names(_long, together=True)),
        Check("`blockers` across graphs", "several graphs", 1, names(_several_graphs, together=True)),
        Check(
            "the five programs at other sizes",
            "other sizes",
            1,
            fuses(*(each for name in BLOCKED for each in sized(name, (3, 33)))),
        ),
        Check(
            "in double precision, away from zero",
            "precision",
            0.5,
            fuses(
                *sized(
                    "standardised", (7, 9), shift=3.0
                ),  # farther from zero, the mean of squares less the square of the mean is wrong
                *sized("spread", (7, 9), dtype=torch.float64),
                *sized("standardised", (7, 9), dtype=torch.float64, shift=-3.0),
            ),
        ),
    ),
    equivalent={
        "return x.relu() / x.shape[-1] ** 0.5: -1 -> 1": "x has two dimensions",
        "return x.relu().amax(-1) - x.relu().amin(-1): -1 -> 1": "x has two dimensions",
    },
    controls=(
        ANSWERS.reference(10),
        ANSWERS.edited(
            "in other ways",
            10,
            (
                "torch.select_scatter(cache, k, 1, cache.shape[1] - 1)",
                "torch.where(torch.arange(cache.shape[1]) == cache.shape[1] - 1, k[:, None], cache)",
            ),
            ("x.exp().T + 1", "(x.exp() + 1).T"),
            ("(x - mean) / (variance + 1e-05).sqrt()", "F.layer_norm(x, x.shape)"),
        ),
        ANSWERS.edited(
            "writes into a copy",
            8.8,
            (
                "return torch.select_scatter(cache, k, 1, cache.shape[1] - 1).tanh()",
                "new = cache.clone()\n        new[:, -1] = k\n        return new.tanh()",
            ),
        ),
        ANSWERS.edited(
            "asks for the library before the graph",
            10,
            ("'graph break': a['graph'] != b['graph'], ", ""),
            ("a['library'] or b['library'],", "a['library'] or b['library'], 'graph break': a['graph'] != b['graph'],"),
            below=True,
        ),
        ANSWERS.file("as they were", 0),
    ),
)
