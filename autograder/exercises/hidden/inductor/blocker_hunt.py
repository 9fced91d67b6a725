"""Hidden checks and controls of exercise 09.4."""

from __future__ import annotations

import torch

from autograder.exercises.inductor import blocker_hunt as visible
from autograder.exercises.programs.loop_listings import BREAK, REASONS, Listing, drawn
from autograder.host.draw import Draw
from autograder.host.exercise import Check, Control, HiddenPart

fuses, names, sized = visible.fuses, visible.names, visible.sized


def _long(draw: Draw) -> list[Listing]:
    return [drawn(draw, draw.sample(REASONS[1:] * 2, n)) for n in (5, 6, 7, 8)]


def _several_graphs(draw: Draw) -> list[Listing]:
    return [drawn(draw, [*draw.sample(REASONS, 2), BREAK, *draw.sample(REASONS, 3)]) for _ in range(5)]


REFERENCE = '''
def reason(producer, consumer):
    """The first of the five that holds."""
    if producer["graph"] != consumer["graph"]:
        return "graph break"
    if producer["library"] or consumer["library"]:
        return "extern kernel"
    if producer["into"] or consumer["into"]:
        return "mutation"
    same = prod(producer["over"]) == prod(consumer["over"] + consumer["reducing"])
    return "view" if same and not producer["reducing"] else "size mismatch"


def blockers(loops):
    """Every edge between two kernels, with its reason."""
    wrote = {loop["writes"]: loop for loop in loops}
    found = {}
    for loop in loops:
        for buffer, _ in loop["reads"]:
            producer = wrote.get(buffer, loop)
            if producer["kernel"] != loop["kernel"]:
                found[producer["name"], loop["name"]] = reason(producer, loop)
    return [[*edge, why] for edge, why in found.items()]


def hunted():
    """The namer, and five programs that fuse as far as they can."""

    def reported(x):
        return x.relu() / x.shape[-1] ** 0.5

    def appended(cache, k):
        return torch.select_scatter(cache, k, 1, cache.shape[1] - 1).tanh()

    def turned(x):
        y = x.exp()
        return y, y.T + 1

    def spread(x):
        h = x.relu()
        return h.amax(-1) - h.amin(-1)

    def standardised(x):
        variance, mean = torch.var_mean(x, correction=0)
        return (x - mean) / (variance + 1e-5).sqrt()

    functions = (blockers, reported, appended, turned, spread, standardised)
    return {function.__name__: function for function in functions}
'''
AS_THEY_WERE = '''
def hunted():
    """The programs as they were, and nothing named."""

    def blockers(loops):
        return []

    def reported(x):
        h = x.relu()
        print(tuple(h.shape))
        return h / h.shape[-1] ** 0.5

    def appended(cache, k):
        cache[:, -1] = k
        return cache.tanh()

    def turned(x):
        y = x.exp()
        return y, y.T.contiguous() + 1

    def spread(x):
        ranked = x.relu().sort(-1).values
        return ranked[:, -1] - ranked[:, 0]

    def standardised(x):
        centred = x - x.mean()
        return centred / (centred.pow(2).mean() + 1e-5).sqrt()

    functions = (blockers, reported, appended, turned, spread, standardised)
    return {function.__name__: function for function in functions}
'''
OTHER_WAYS = (
    REFERENCE.replace(
        "torch.select_scatter(cache, k, 1, cache.shape[1] - 1)",
        "torch.where(torch.arange(cache.shape[1]) == cache.shape[1] - 1, k[:, None], cache)",
    )
    .replace("y.T + 1", "(y + 1).T")
    .replace("variance, mean = torch.var_mean(x, correction=0)\n        ", "")
    .replace("(x - mean) / (variance + 1e-5).sqrt()", "F.layer_norm(x, x.shape)")
)

HIDDEN = HiddenPart(
    checks=(
        Check("`blockers` on long listings", "long listings", 1.2, names(_long)),
        Check("`blockers` across graphs", "several graphs", 1, names(_several_graphs)),
        Check(
            "the five programs at other sizes",
            "other sizes",
            1,
            fuses(*(each for name in visible.BLOCKED for each in sized(name, (3, 33)))),
        ),
        Check(
            "in double precision, far from zero",
            "precision",
            0.8,
            fuses(
                *sized("standardised", (7, 9), shift=30.0),  # farther, and `F.layer_norm` rounds more than is allowed
                *sized("spread", (7, 9), dtype=torch.float64),
                *sized("standardised", (7, 9), dtype=torch.float64, shift=-30.0),
            ),
        ),
    ),
    equivalent={
        "line 30: -1 -> 1": "x has two dimensions",
        "line 41: -1 -> 1": "h has two dimensions",
    },
    controls=(
        Control("reference", REFERENCE, 10),
        Control("in other ways", OTHER_WAYS, 10),
        Control("as they were", AS_THEY_WERE, 0),
    ),
)
