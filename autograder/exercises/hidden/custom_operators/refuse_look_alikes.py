"""Hidden checks and controls of exercise 11.5."""

import math

import torch
from torch import Tensor
from torch.nn import functional as F

from autograder.exercises.custom_operators.refuse_look_alikes import (
    BARELY,
    BIAS,
    NO_VECTOR,
    ONE_ELEMENT,
    OPERATOR,
    PLAIN,
    ROWS,
    TWO_DTYPES,
    WIDTH,
)
from autograder.exercises.hidden.answer_files import Answers
from autograder.exercises.programs.aten_programs import aten_program
from autograder.host.checks.fusion_checks import rewrites
from autograder.host.exercise import Check, Control, HiddenPart
from autograder.host.traced import TensorSpec

MATRIX, SQUARE = TensorSpec((3, WIDTH)), TensorSpec((WIDTH, WIDTH))


def _written_between(x: Tensor, b: Tensor) -> Tensor:
    h = x * 1.5
    s = h + b
    h.add_(1.0)
    return F.gelu(s) * F.gelu(h + b)


def _gate_returned(x: Tensor, b: Tensor) -> tuple[Tensor, Tensor]:
    h = x + b
    gate = torch.erf(h * math.sqrt(0.5))
    return (h * 0.5) * (gate + 1), F.gelu(torch.add(x, b)) - gate


FUSED = [
    aten_program(
        "F.gelu(x + b), x of rank 3",
        lambda x, b: F.gelu(x + b),
        (TensorSpec((2, 3, WIDTH)), BIAS),
        missed="x may have any rank.",
    ),
    aten_program(
        "F.gelu(x + b) in float64",
        lambda x, b: F.gelu(x + b),
        (TensorSpec((5, WIDTH), torch.float64), TensorSpec((WIDTH,), torch.float64)),
        missed="Any dtype is right that x and bias share.",
    ),
    aten_program("F.gelu(x + b), one row", lambda x, b: F.gelu(x + b), (TensorSpec((1, WIDTH)), BIAS)),
    aten_program(
        "F.gelu(x[1:] + b)",
        lambda x, b: F.gelu(x[1:] + b),
        (ROWS, BIAS),
        missed="A slice of rows is contiguous: what begins later in memory is no reason to refuse.",
    ),
    aten_program(
        "F.gelu(F.gelu(x + b) + b)", lambda x, b: F.gelu(F.gelu(x + b) + b), (ROWS, BIAS), 2, missed="Two in a chain."
    ),
    aten_program(
        "return F.gelu(x + b), used twice",
        lambda x, b: (g := F.gelu(x + b)) * 2 + g,
        (ROWS, BIAS),
        missed="Many may read the last node of the match: the fused call takes its place.",
    ),
]
LOOK_ALIKES = [
    NO_VECTOR,
    aten_program(
        "F.gelu(x + y) * F.gelu(x + b), all square",
        lambda x, y, b: F.gelu(x + y) * F.gelu(x + b),
        (SQUARE, SQUARE, BIAS),
        reason="y has two dimensions: it is no bias.",
    ),
    aten_program(
        "F.gelu(x + b) * F.gelu(x + c)",
        lambda x, c, b: F.gelu(x + b) * F.gelu(x + c),
        (ROWS, TensorSpec((4, 1)), BIAS),
        reason="c of shape (4, 1) is added along rows.",
    ),
    ONE_ELEMENT,
    aten_program(
        "F.gelu(z + b) + F.gelu(x + b)",
        lambda x, z, b: F.gelu(z + b) + F.gelu(x + b),
        (ROWS, TensorSpec((4, 1)), BIAS),
        reason="z of shape (4, 1) is spread over the columns: the result is larger than z.",
    ),
    TWO_DTYPES,
    aten_program(
        "F.gelu(x + 1.0) * F.gelu(x + b)",
        lambda x, b: F.gelu(x + 1.0) * F.gelu(x + b),
        (ROWS, BIAS),
        reason="1.0 is a number, not a bias.",
    ),
    aten_program(
        "F.gelu(b + x) * F.gelu(x + b)",
        lambda x, b: F.gelu(b + x) * F.gelu(x + b),
        (ROWS, BIAS),
        reason="In the first sum the operands are turned round, and the pattern takes x for the bias.",
    ),
    aten_program(
        "h = x * 1.5; s = h + b; h.add_(1.0); F.gelu(s) * F.gelu(h + b)",
        _written_between,
        (ROWS, BIAS),
        reason="h is written to between the first sum and its GELU.",
        plain=PLAIN,
    ),
    aten_program(
        "F.gelu(torch.add(x, b, alpha=1 + 2**-52)) + F.gelu(x + b)",
        lambda x, b: F.gelu(torch.add(x, b, alpha=BARELY)) + F.gelu(x + b),
        (ROWS, BIAS),
        reason="alpha is not 1, though no result shows it.",
    ),
    aten_program(
        "erf(h * sqrt(0.5)) is read twice",
        _gate_returned,
        (ROWS, BIAS),
        reason="The error function is also subtracted, so it must stay.",
    ),
]

ANSWERS = Answers(__name__)
ALWAYS = (
    "def fuse_bias_gelu(graph_module):\n    fuse_loosely(graph_module, lambda match: {})\n    return graph_module\n"
)

KEYWORDS = """
def fuse_bias_gelu(graph_module):
    x, *_, bias = graph_module.graph.find_nodes(op="placeholder")
    *_, output = graph_module.graph.nodes
    with graph_module.graph.inserting_before(output):
        odd = {f"k{number}": 1.0 for number in range(100)}
        output.args = (graph_module.graph.call_function(torch.ops.course_lib.bias_gelu.default, (x, bias), odd),)
    graph_module.graph.eliminate_dead_code()
    graph_module.recompile()
    return graph_module
"""

HIDDEN = HiddenPart(
    checks=(
        Check("other ranks, dtypes and places", "spellings", 2, rewrites(FUSED, OPERATOR)),
        Check("eleven look-alikes stay", "look-alikes", 5, rewrites(LOOK_ALIKES, OPERATOR, together=True)),
    ),
    controls=(
        ANSWERS.reference(15),
        *ANSWERS.styles(15),
        ANSWERS.edited(
            "alpha by its name",
            15,
            (
                "if any((node.kwargs for node in match.nodes)):",
                "if any(('alpha' in node.kwargs for node in match.nodes)):",
            ),
        ),
        ANSWERS.edited(
            "a difference of numbers",
            15,
            (
                "all(map(math.isclose, numbers, (0.5, math.sqrt(0.5), 1)))",
                "all((abs(a - b) < 1e-9 for a, b in zip(numbers, (0.5, 2 ** -0.5, 1))))",
            ),
        ),
        ANSWERS.edited(
            "a number for a truth",
            15,
            ("column.shape == rows.shape[-1:] and", "1 * (column.shape == rows.shape[-1:]) *"),
            ("column.dtype == rows.dtype", "(column.dtype == rows.dtype)"),
        ),
        ANSWERS.edited("the last of the nodes", 15, ("match.output_node()", "match.nodes[-1]")),
        ANSWERS.edited(
            "rank and length",
            15,
            ("column.shape == rows.shape[-1:]", "column.ndim == 1 and column.numel() == rows.size(-1)"),
        ),
        ANSWERS.edited(
            "users one by one",
            15,
            ("not set(node.users) <= inside", "any((user not in inside for user in node.users))"),
        ),
        ANSWERS.edited(
            "the form of the sum",
            15,
            ("column.shape == rows.shape[-1:]", "column.dim() == 1 and list(column.shape) == list(rows.shape)[-1:]"),
        ),
        ANSWERS.edited("ignores keyword arguments", 6, ("if any((node.kwargs for node in match.nodes)):", "if False:")),
        ANSWERS.edited(
            "looks at the first sum's alpha only",
            9,
            ("if any((node.kwargs for node in match.nodes)):", "if match.nodes[0].kwargs:"),
        ),
        ANSWERS.edited(
            "ignores who else reads",
            8.5,
            ("if any((not set(node.users) <= inside for node in match.nodes if node is not last)):", "if False:"),
        ),
        ANSWERS.edited(
            "one reader for each node",
            0,
            (
                "if any((not set(node.users) <= inside for node in match.nodes if node is not last)):",
                "if any((len(node.users) != 1 for node in match.nodes)):",
            ),
        ),
        ANSWERS.edited(
            "asks only for the readers of the sum",
            10,
            ("for node in match.nodes if node is not last)", "for node in match.nodes[:1])"),
            trap="Nothing outside may read a node of the match but its last one.",
        ),
        ANSWERS.edited(
            "the last node must not be read twice",
            14.668,
            (" if node is not last", " if node is not last or len(node.users) > 1"),
            below=True,
        ),
        ANSWERS.edited(
            "ignores the numbers", 9, ("if not all(map(math.isclose, numbers, (0.5, math.sqrt(0.5), 1))):", "if False:")
        ),
        ANSWERS.edited(
            "numbers to two digits",
            9,
            (
                "if not all(map(math.isclose, numbers, (0.5, math.sqrt(0.5), 1))):",
                "if not all((abs(a - b) < 0.01 for a, b in zip(numbers, (0.5, math.sqrt(0.5), 1)))):",
            ),
        ),
        ANSWERS.edited(
            "numbers equal to the last digit",
            14.5,
            (
                "if not all(map(math.isclose, numbers, (0.5, math.sqrt(0.5), 1))):",
                "if numbers != [0.5, math.sqrt(0.5), 1]:",
            ),
        ),
        ANSWERS.edited("ignores the dtype", 9, (" and column.dtype == rows.dtype", "")),
        ANSWERS.edited("only the rank of the bias", 9, ("column.shape == rows.shape[-1:]", "column.ndim == 1")),
        ANSWERS.edited(
            "only the length of the bias", 9, ("column.shape == rows.shape[-1:]", "column.shape[-1] == rows.shape[-1]")
        ),
        ANSWERS.edited(
            "matrices only",
            14.668,
            ("column.shape == rows.shape[-1:]", "rows.ndim == 2 and column.shape == rows.shape[-1:]"),
            below=True,
        ),
        ANSWERS.edited(
            "float32 only",
            14.668,
            ("column.dtype == rows.dtype", "column.dtype == rows.dtype == torch.float32"),
            below=True,
        ),
        Control("a hundred keywords", KEYWORDS, 0),
        Control("accepts everything", ALWAYS.format("True"), 3.5),
        Control("refuses everything", ALWAYS.format("False"), 0),
    ),
)
