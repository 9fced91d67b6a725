"""Hidden checks and controls of exercise 07.2."""

from __future__ import annotations

from collections.abc import Iterator

import torch

from autograder.exercises.dynamo import remove_breaks as visible
from autograder.host.draw import Draw
from autograder.host.exercise import Check, Control, HiddenPart
from autograder.host.kinds.callable import Case
from autograder.host.kinds.captured import captures

of, PROGRAMS, WIDTH = visible.of, visible.PROGRAMS, visible.WIDTH


def _other_rows(draw: Draw) -> Iterator[Case]:
    for rows in (2, 3, 127):
        yield Case((draw.normal(rows, WIDTH) - 0.2,), label=f"for {rows} rows")


def _double(draw: Draw) -> Iterator[Case]:
    for shift in (-1.0, 1.0):
        yield Case((draw.normal(4, WIDTH, dtype=torch.float64) + shift,), label="in float64")


REFERENCE = '''
LIMIT = 1.5


def repaired():
    """Six programs, each captured as one graph."""

    def report(x):
        h = x.relu()
        return h * 2, h.mean()

    def rescale(x):
        return x / x.abs().max()

    def branch(x):
        return torch.where(x.sum() > 0, x * 2, x - 1)

    def normalise(x):
        return x / x.norm(dim=1, keepdim=True)

    def area(x):
        return ((x[..., 1:] + x[..., :-1]) / 2).sum(-1)

    def limit(x):
        return x.clamp(-LIMIT, LIMIT), (x.abs() > LIMIT).to(x.dtype).mean()

    return {
        "report": report,
        "rescale": rescale,
        "branch": branch,
        "normalise": normalise,
        "area": area,
        "limit": limit,
    }
'''
WITH_COND = REFERENCE.replace(
    "torch.where(x.sum() > 0, x * 2, x - 1)",
    "torch.cond(x.sum() > 0, lambda x: x * 2, lambda x: x - 1, (x,))",
)
BROKEN = '''
LIMIT = 1.5
LOG = logging.getLogger("limit")


def repaired():
    """The programs as they were."""

    def report(x):
        h = x.relu()
        print("mean", h.mean())
        return h * 2, h.mean()

    def rescale(x):
        return x / x.abs().max().item()

    def branch(x):
        return x * 2 if x.sum() > 0 else x - 1

    def normalise(x):
        norms = []
        for row in x:
            norms.append(row.norm().item())
        return x / torch.tensor(norms)[:, None]

    def area(x):
        return torch.from_numpy(np.trapezoid(x.numpy(), axis=-1))

    def limit(x):
        LOG.warning("outside: %s", (x.abs() > LIMIT).float().mean())
        return x.clamp(-LIMIT, LIMIT), (x.abs() > LIMIT).float().mean()

    return {
        "report": report,
        "rescale": rescale,
        "branch": branch,
        "normalise": normalise,
        "area": area,
        "limit": limit,
    }
'''

HIDDEN = HiddenPart(
    checks=(
        Check(
            "any number of rows in one graph",
            "other sizes",
            2.4,
            captures(*(of(name, _other_rows) for name in PROGRAMS)),
        ),
        Check(
            "double precision",
            "precision",
            1.2,
            captures(*(of(name, _double, dtype=torch.float64) for name in ("report", "normalise", "limit"))),
        ),
        Check(
            "gradients through the captured graph",
            "gradients",
            1.2,
            captures(*(of(name, visible.four_rows) for name in ("rescale", "branch", "normalise")), gradients=True),
        ),
    ),
    controls=(
        Control("reference", REFERENCE, 12),
        Control("torch.cond", WITH_COND, 12),
        Control("as they were", BROKEN, 0),
    ),
)
