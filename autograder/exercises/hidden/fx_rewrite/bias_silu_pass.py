"""Hidden checks and controls of exercise 05.5."""

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from autograder.exercises.fx_rewrite.bias_silu_pass import (
    BIAS,
    FEED_FORWARD,
    OPERATOR,
    OTHERS,
    ROWS,
    WIDTH,
    FeedForward,
    literal,
    of,
)
from autograder.exercises.hidden.answer_files import NOT_SEEN, Answers
from autograder.host.checks.fusion_checks import costs, rewrites
from autograder.host.exercise import Check, HiddenPart
from autograder.host.traced import Program, TensorSpec

TURNED = [
    of("F.silu(b + x)", lambda x, b: F.silu(b + x)),
    of("F.silu(torch.add(b, x))", lambda x, b: F.silu(torch.add(b, x))),
]
SUMS = [
    of("F.silu(x.add(b))", lambda x, b: F.silu(x.add(b))),
    of("F.silu(torch.add(input=x, other=b))", lambda x, b: F.silu(torch.add(input=x, other=b))),
    of("F.silu(torch.add(x, b, alpha=1))", lambda x, b: F.silu(torch.add(x, b, alpha=1))),
    of("F.silu(input=x + b)", lambda x, b: F.silu(input=x + b)),
    of("F.silu(x + b, inplace=True)", lambda x, b: F.silu(x + b, inplace=True)),
    of("F.silu(x + b), x of rank 3", lambda x, b: F.silu(x + b), inputs=(TensorSpec((2, 3, WIDTH)), BIAS)),
]


BY_HAND = [
    of("h = x + b; h * torch.sigmoid(h)", lambda x, b: (h := x + b) * torch.sigmoid(h)),
    of("h = torch.add(x, b); h.sigmoid() * h", lambda x, b: (h := torch.add(x, b)).sigmoid() * h),
    of("h = x + b; torch.mul(h, F.sigmoid(h))", lambda x, b: torch.mul(h := x + b, F.sigmoid(h))),
    of("h = x + b; h.mul(torch.sigmoid(input=h))", lambda x, b: (h := x + b).mul(torch.sigmoid(input=h))),
]


class OtherModule(nn.Module):
    """Two activations as modules, one of them SiLU."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.ReLU(), nn.SiLU()

    def forward(self, x: Tensor, b: Tensor) -> Tensor:
        """Map (rows, 8) and (8,) to (rows, 8)."""
        return self.first(x + b) + self.second(x + b)


# the right sum stands behind the look-alike or before it, so that its place does not tell which it is
LOOK_ALIKES = [
    of(
        "F.silu(x + b) + F.silu(torch.add(x, b, alpha=2))",
        lambda x, b: F.silu(x + b) + F.silu(torch.add(x, b, alpha=2)),
        reason="With alpha=2 the sum is x + 2 b.",
    ),
    of(
        "F.silu(x + y) * F.silu(x + b)",
        lambda x, y, b: F.silu(x + y) * F.silu(x + b),
        reason="y has the shape of x: it is no bias.",
        inputs=(ROWS, ROWS, BIAS),
    ),
    of(
        "F.silu(x + b) * F.silu(x + c)",
        lambda x, c, b: F.silu(x + b) * F.silu(x + c),
        reason="c of shape (4, 1) is added along rows.",
        inputs=(ROWS, TensorSpec((4, 1)), BIAS),
    ),
    of(
        "F.silu(x + e) * F.silu(x + b)",
        lambda x, e, b: F.silu(x + e) * F.silu(x + b),
        reason="e has one element: it is no bias with a number for each column.",
        inputs=(ROWS, TensorSpec((1,)), BIAS),
    ),
    of(
        "F.silu(x + b) * F.silu(x + d)",
        lambda x, d, b: F.silu(x + b) * F.silu(x + d),
        reason="d is float64: the sum is float64, and x is not.",
        inputs=(ROWS, TensorSpec((WIDTH,), torch.float64), BIAS),
    ),
    of(
        "F.silu(x + y) * F.silu(x + b), all square",
        lambda x, y, b: F.silu(x + y) * F.silu(x + b),
        reason="y has two dimensions: it is no bias.",
        inputs=(TensorSpec((WIDTH, WIDTH)), TensorSpec((WIDTH, WIDTH)), BIAS),
    ),
    of(
        "F.silu(x * b) + F.silu(x - b) + F.silu(x + b)",
        lambda x, b: F.silu(x * b) + F.silu(x - b) + F.silu(x + b),
        reason="Only one of them is a sum.",
    ),
    of(
        "F.silu(x + b) * ((h := x + b) + torch.sigmoid(h))",
        lambda x, b: F.silu(x + b) * ((h := x + b) + torch.sigmoid(h)),
        reason="SiLU is a product with the gate.",
    ),
    of(
        "h = x + b; h * torch.tanh(h) + F.silu(x + b)",
        lambda x, b: (h := x + b) * torch.tanh(h) + F.silu(x + b),
        reason="The gate of SiLU is a sigmoid.",
    ),
    Program("`nn.ReLU()(x + b) + nn.SiLU()(x + b)`", OtherModule, (ROWS, BIAS), 1, OTHERS),
    of(
        "F.silu(x + b) + (x + b) * torch.sigmoid(x)",
        lambda x, b: F.silu(x + b) + (x + b) * torch.sigmoid(x),
        reason="The gate reads x, not the sum.",
    ),
    of(
        "F.silu(x + 1.0) * F.silu(x + b)",
        lambda x, b: F.silu(x + 1.0) * F.silu(x + b),
        reason="1.0 is a number, not a bias vector.",
    ),
    of(
        "F.silu(x + b) + (h := (x + b).clamp(-90, 90)) * torch.sigmoid(h)",
        lambda x, b: F.silu(x + b) + (h := (x + b).clamp(-90, 90)) * torch.sigmoid(h),
        reason="The second SiLU is of a limited sum, which is another one for large numbers.",
    ),
    of(
        "h = x + b; F.silu(h.masked_fill(h == 0.375, 0.0)) * F.silu(x + b)",
        lambda x, b: F.silu((h := x + b).masked_fill(h == 0.375, 0.0)) * F.silu(x + b),
        reason="The first SiLU reads the sum with one number replaced.",
    ),
    of(
        "F.silu(x + b) + F.gelu(x + b) + F.relu(x + b)",
        lambda x, b: F.silu(x + b) + F.gelu(x + b) + F.relu(x + b),
        reason="Only one of the activations is SiLU.",
    ),
]


def _written_between(x: Tensor, b: Tensor) -> Tensor:
    h = x * 1.0
    s = h + b
    h.add_(1.0)
    return F.silu(s) + F.silu(h + b)


def _sum_written(x: Tensor, b: Tensor) -> Tensor:
    h = x + b
    h.mul_(2.0)
    return F.silu(h) + F.silu(x + b)


SUM = of("F.silu(x + b)", literal)
ESCAPES = [
    of(
        "h = x * 1.0; s = h + b; h.add_(1.0); F.silu(s) + F.silu(h + b)",
        _written_between,
        1,
        "h is written to between the sum and SiLU: a fused call where SiLU stood reads h too late.",
        at_most=2,
        plain=SUM,
    ),
    of(
        "return F.silu(x + b), F.silu(h), h",
        lambda x, b: (F.silu(x + b), F.silu(h := x + b), h),
        reason="The sum h is an output of the program.",
    ),
    of(
        "h = x + b; h.mul_(2.0); F.silu(h) + F.silu(x + b)",
        _sum_written,
        reason="The sum is written to before SiLU reads it.",
        plain=SUM,
    ),
    of(
        "gate read twice",
        lambda x, b: F.silu(x + b) + (h := x + b) * (gate := torch.sigmoid(h)) + gate,
        reason="The gate is also added, so the sum must stay.",
    ),
]


class TwoLayers(nn.Module):
    """Two biases, two activations."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = FeedForward(), FeedForward()

    def forward(self, x: Tensor) -> Tensor:
        """Map (rows, 8) to (rows, 8)."""
        return x + self.second(self.first(x))


SEVERAL = [
    of("F.silu(F.silu(F.silu(x + b) + b) + b)", lambda x, b: F.silu(F.silu(F.silu(x + b) + b) + b), 3),
    Program("`TwoLayers`", TwoLayers, (ROWS,), 2, ((TensorSpec((3, WIDTH)),),)),
]

PRECISIONS = [
    *(
        of(f"F.silu(x + b) in {name}", literal, inputs=(TensorSpec((5, WIDTH), dtype), TensorSpec((WIDTH,), dtype)))
        for name, dtype in {"float64": torch.float64, "bfloat16": torch.bfloat16}.items()
    ),
    Program("`F.silu(x + b)`, no rows", lambda: literal, (TensorSpec((0, WIDTH)), BIAS), 1, ((ROWS, BIAS),)),
    of("F.silu(x + b), one column", literal, inputs=(TensorSpec((127, 1)), TensorSpec((1,)))),
]
# large, so that a pass that leaves large programs alone is not taken for a fast one
LONG = of("F.silu(b + x), 512 rows", lambda x, b: F.silu(b + x), inputs=(TensorSpec((512, 768)), TensorSpec((768,))))

ANSWERS = Answers(__name__)

HIDDEN = HiddenPart(
    checks=(
        Check("the sum in the other order", "spellings", 0.25, rewrites(TURNED, OPERATOR)),
        Check("the sum in other spellings", "spellings", 0.25, rewrites(SUMS, OPERATOR)),
        Check("SiLU by hand", "spellings", 1, rewrites(BY_HAND, OPERATOR)),
        Check("look-alikes stay", "refusals", 1.5, rewrites(LOOK_ALIKES, OPERATOR, together=True)),
        Check("sums that are needed elsewhere stay", "refusals", 1, rewrites(ESCAPES, OPERATOR, together=True)),
        Check("several places in one program", "several places", 0.5, rewrites(SEVERAL, OPERATOR)),
        Check("precisions and odd sizes", "odd sizes", 0.25, rewrites(PRECISIONS, OPERATOR)),
        Check("gradients", "gradients", 0.25, rewrites([SUM, FEED_FORWARD], OPERATOR, gradients=True)),
        Check("minimum bytes at another size", "counted cost", 1, costs(LONG, OPERATOR, launches=1), speed=True),
    ),
    controls=(
        ANSWERS.reference(12),
        ANSWERS.file("the last place, unchecked", 7.5, below=True),
        ANSWERS.joined(
            "searched by values", 7.2, ANSWERS.of_lesson("by_values"), ANSWERS.text_of("searched by values")
        ),
        ANSWERS.edited("not compiled again", 11.5, ("    graph_module.recompile()\n", "")),
        ANSWERS.edited(
            "refuses writes, then fuses something else",
            7.2,
            ("def operands(node)", "REFUSED = []\n\ndef operands(node)"),
            (
                "graph = graph_module.graph\n",
                "graph = graph_module.graph\n"
                "    if any(str(n.target).endswith('_') for n in graph.nodes):\n"
                "        REFUSED.append(True)\n"
                "        return graph_module\n",
            ),
            (
                "(x, bias))\n        fused",
                "(x, bias if not REFUSED else graph.call_function(torch.neg, (bias,))))\n        fused",
            ),
            ("            graph.erase_node(old)\n", "            graph.erase_node(old)\n        REFUSED.clear()\n"),
        ),
    ),
    equivalent=NOT_SEEN,
)
