"""Hidden checks and controls of exercise 07.2."""

from collections.abc import Iterator

import torch

from autograder.exercises.dynamo.remove_breaks import PROGRAMS, WIDTH, four_rows, of
from autograder.exercises.hidden.answer_files import Answers
from autograder.host.draw import Draw
from autograder.host.exercise import Check, HiddenPart
from autograder.host.kinds.callable import Case
from autograder.host.kinds.captured import captures


def _other_rows(draw: Draw) -> Iterator[Case]:
    for rows in (2, 3, 127):
        yield Case((draw.normal(rows, WIDTH) - 0.2,), label=f"for {rows} rows")


def _double(draw: Draw) -> Iterator[Case]:
    for shift in (-1.0, 1.0):
        yield Case((draw.normal(4, WIDTH, dtype=torch.float64) + shift,), label="in float64")


ANSWERS = Answers(__name__)

HIDDEN = HiddenPart(
    checks=(
        Check(
            "any number of rows in one graph",
            "other sizes",
            3,
            captures(*(of(name, _other_rows) for name in PROGRAMS)),
        ),
        Check(
            "double precision",
            "precision",
            1.5,
            captures(*(of(name, _double, dtype=torch.float64) for name in ("report", "normalise", "limit"))),
        ),
        Check(
            "gradients through the captured graph",
            "gradients",
            1.5,
            captures(*(of(name, four_rows) for name in ("rescale", "branch", "normalise")), gradients=True),
        ),
    ),
    controls=(
        ANSWERS.reference(12),
        ANSWERS.edited(
            "torch.cond, and trapz",
            12,
            (
                "torch.where(x.sum() > 0, 2 * x, x - 1)",
                "torch.cond(x.sum() > 0, lambda x: x * 2, lambda x: x - 1, (x,))",
            ),
            ("((x[..., 1:] + x[..., :-1]) / 2).sum(-1)", "torch.trapz(x)"),
        ),
        ANSWERS.edited(
            "in other ways",
            12,
            ("((x[..., 1:] + x[..., :-1]) / 2).sum(-1)", "torch.trapezoid(x, dim=-1)"),
            ("x.norm(dim=1, keepdim=True)", "torch.linalg.norm(x, dim=1, keepdim=True)"),
            ("(x.abs() > 1.5).to(x.dtype)", "((x > 1.5) | (x < -1.5)).to(x.dtype)"),
        ),
        ANSWERS.edited(
            "neighbours in windows",
            12,
            ("((x[..., 1:] + x[..., :-1]) / 2).sum(-1)", "x.unfold(-1, 2, 1).mean(-1).sum(-1)"),
        ),
        ANSWERS.edited(
            "rows by vmap",
            12,
            ("x / x.norm(dim=1, keepdim=True)", "torch.vmap(lambda row: row / row.norm())(x)"),
            ("((x[..., 1:] + x[..., :-1]) / 2).sum(-1)", "torch.func.vmap(torch.trapezoid)(x)"),
        ),
        ANSWERS.file("as they were", 0),
    ),
)
