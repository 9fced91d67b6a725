"""Hidden checks and controls of exercise 14.2."""

import torch

from autograder.exercises.hidden.answer_files import Answers
from autograder.exercises.shipping.repair_exports import calls_operator, remembers, repaired_as
from autograder.host.exercise import Check, HiddenPart
from autograder.host.kinds.captured import captures

ANSWERS = Answers(__name__)
COND = "torch.cond(x.mean() > 0, lambda x: x * 2, lambda x: x - 1, (x,))"

HIDDEN = HiddenPart(
    checks=(
        Check(
            "`gate` for means near 0, in double precision",
            "a branch",
            1.5,
            captures(repaired_as("gate", -0.5, (0.001, -0.001, 2.0), dtype=torch.float64)),
        ),
        Check("`running` in five calls", "state", 1.5, remembers(5)),
        Check("`smooth` is one operator", "a foreign kernel", 1.5, calls_operator),
        Check("`first` for all counts", "a number from data", 1.5, captures(repaired_as("first", 3, (0, 1, 5, 6)))),
    ),
    controls=(
        ANSWERS.reference(14),
        *ANSWERS.styles(14),
        ANSWERS.file("as they were", 0),
        ANSWERS.edited("each element by itself", 10.5, (COND, "torch.where(x > 0, x * 2, x - 1)")),
        ANSWERS.edited("always doubles", 10.5, (COND, "x * 2")),
        ANSWERS.edited(
            "branches exchanged", 10.5, ("lambda x: x * 2, lambda x: x - 1", "lambda x: x - 1, lambda x: x * 2")
        ),
        ANSWERS.edited("a branch of Python", 10.5, (COND, "x * 2 if x.mean() > 0 else x - 1")),
        ANSWERS.edited(
            "the sum is no buffer",
            10.5,
            ("self.register_buffer('total', torch.zeros(8))", "self.total = torch.zeros(8)"),
            ("self.total += x.sum(0)", "self.total = self.total + x.sum(0)"),
        ),
        ANSWERS.edited(
            "nothing is kept",
            10.5,
            ("self.total += x.sum(0)", "total = x.sum(0)"),
            ("self.total / self.rows", "total / x.shape[0]"),
            ("self.rows += x.shape[0]", "pass"),
        ),
        ANSWERS.edited("rows are not counted", 10.5, ("self.rows += x.shape[0]", "self.rows.fill_(x.shape[0])")),
        ANSWERS.edited("the formula in place of the operator", 12.5, ("bias_gelu(x, bias)", "F.gelu(x + bias)")),
        ANSWERS.edited("GELU by tanh", 10.5, ("bias_gelu(x, bias)", "F.gelu(x + bias, approximate='tanh')")),
        ANSWERS.edited("no bias", 10.5, ("bias_gelu(x, bias)", "F.gelu(x)")),
        ANSWERS.edited("one row too many", 10.5, ("< count", "<= count")),
        ANSWERS.edited("the count of the example", 10.5, ("< count", "< 3")),
        ANSWERS.edited("all rows", 10.5, ("((torch.arange(x.shape[0]) < count).unsqueeze(-1) * x).sum(0)", "x.sum(0)")),
        ANSWERS.edited(
            "the count as a number",
            10.5,
            ("((torch.arange(x.shape[0]) < count).unsqueeze(-1) * x).sum(0)", "x[:count.item()].sum(0)"),
        ),
        ANSWERS.edited("modules in place of programs", 0, ("export(module, given)", "module")),
    ),
)
