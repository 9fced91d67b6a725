"""Hidden checks and controls of exercise 11.2."""

import torch
from torch import Tensor
from torch.nn import functional as F

from autograder.exercises.custom_operators.replace_block_end import (
    COLUMN,
    INPUTS,
    OPERATOR,
    ROWS,
    SPREAD,
    WIDTH,
    block_end,
    with_eps,
)
from autograder.exercises.hidden.answer_files import CODE_NOT_SEEN, Answers
from autograder.exercises.programs.aten_programs import aten_program
from autograder.host.checks.fusion_checks import rewrites
from autograder.host.exercise import Check, Control, HiddenPart
from autograder.host.traced import TensorSpec


def _sized(name: str, shape: tuple[int, ...], dtype: torch.dtype = torch.float32) -> tuple[str, tuple[TensorSpec, ...]]:
    rows, column = TensorSpec(shape, dtype), TensorSpec(shape[-1:], dtype)
    return name, (rows, rows, column, column)


def _in_float64(*shapes: tuple[int, ...]) -> list[TensorSpec]:
    return [TensorSpec(shape, torch.float64) for shape in shapes]


SIZES = [
    aten_program(
        f"F.layer_norm(x + r, (N,), w, b), {name}",
        lambda x, r, w, b: F.layer_norm(x + r, w.shape, w, b),
        inputs,
        missed=f"Here: {name}. Is a number of the example in the pattern, such as its width? It fits no other "
        "width; the pattern is traced again with the shapes of each match, so write `weight.shape`.",
    )
    for name, inputs in (
        _sized("rank 3, and width 5", (2, 3, 5)),
        _sized("rank 1, and width 16", (16,)),
        _sized("127 rows of 11", (127, 11)),  # of rows of 3, some have nearly equal elements, and rounding is enlarged
        _sized("one row", (1, 129)),
        _sized("float64", (3, 7), torch.float64),
    )
]
SEVERAL = [
    aten_program(
        "two block ends in a chain",
        lambda x, r, w, b: block_end(block_end(x, r, w, b), x, w, b),
        INPUTS,
        2,
        missed="There are two places in the graph.",
    ),
    aten_program(
        "two block ends, each with an eps of its own",
        lambda x, r, w, b: block_end(block_end(x, r, w, b, 1e-12), x, w, b, 1e-3),
        INPUTS,
        2,
        reason="Each call must have the eps of its own place.",
        missed="There are two places in the graph.",
    ),
    aten_program("r + x", lambda x, r, w, b: block_end(r, x, w, b), INPUTS, missed="A sum has two orders."),
]


def _returned(x: Tensor, r: Tensor, w: Tensor, b: Tensor) -> tuple[Tensor, Tensor]:
    h = x + r
    return F.layer_norm(h, (WIDTH,), w, b) + block_end(x * 2, r, w, b), h


def _by_hand(x: Tensor, r: Tensor, w: Tensor, b: Tensor) -> Tensor:
    h = x + r
    variance, mean = torch.var_mean(h, [1], correction=1, keepdim=True)
    return (h - mean) * torch.rsqrt(variance + 1e-5) * w + b + block_end(x, r, w, b)


STAY = [
    aten_program(
        "h = x + r; return F.layer_norm(h, ...) + block_end(x * 2, r), h",
        _returned,
        INPUTS,
        reason="The first sum is also an output, as in a block with pre-LayerNorm: it must stay.",
    ),
    SPREAD,
    aten_program(
        "block_end(x, r) + F.layer_norm(x + 1.0, (8,), w, b)",
        lambda x, r, w, b: block_end(x, r, w, b) + F.layer_norm(x + 1.0, (WIDTH,), w, b),
        INPUTS,
        reason="1.0 is a number, no residual.",
    ),
    aten_program(
        "F.layer_norm(x + r, (4, 8), v, c) + block_end(x, r)",
        lambda x, r, w, b, v, c: F.layer_norm(x + r, (4, WIDTH), v, c) + block_end(x, r, w, b),
        (*INPUTS, ROWS, ROWS),
        reason="The first LayerNorm is over two dimensions.",
    ),
    aten_program(
        "F.layer_norm(x + d, (8,), v, v) + block_end(x, r), d and v of float64",
        lambda x, r, d, v, w, b: F.layer_norm(x + d, (WIDTH,), v, v) + block_end(x, r, w, b),
        (ROWS, ROWS, *_in_float64((4, WIDTH), (WIDTH,)), COLUMN, COLUMN),
        reason="d is float64 and x is not: the operator takes one dtype.",
    ),
    aten_program(
        "torch.var_mean(h, correction=1) by hand, + block_end(x, r)",
        _by_hand,
        INPUTS,
        reason="With correction=1 the variance is divided by 7 and not by 8.",
    ),
    aten_program(
        "block_end(x, r) + F.layer_norm(x - r, (8,), w, b)",
        lambda x, r, w, b: block_end(x, r, w, b) + F.layer_norm(x - r, (WIDTH,), w, b),
        INPUTS,
        reason="Only one of them has a sum.",
    ),
]

ANSWERS = Answers(__name__)

HIDDEN = HiddenPart(
    checks=(
        Check("other ranks, sizes and dtypes", "odd sizes", 1.5, rewrites(SIZES, OPERATOR)),
        Check("several places, several eps", "several places", 1.5, rewrites([*SEVERAL, with_eps(0.25)], OPERATOR)),
        Check("near misses stay", "look-alikes", 2, rewrites(STAY, OPERATOR, together=True)),
    ),
    controls=(
        ANSWERS.reference(12),
        ANSWERS.edited(
            "any keyword of a sum",
            12,
            (
                "'alpha' in node.kwargs for node in match.nodes",
                "node.kwargs for node in match.nodes if 'add' in str(node.target)",
            ),
        ),
        ANSWERS.edited("the residual first", 12, ("F.layer_norm(x + residual,", "F.layer_norm(residual + x,")),
        ANSWERS.edited("by the method", 12, ("x + residual, weight.shape", "x.add(residual), weight.shape")),
        ANSWERS.edited(
            "shapes as tuples",
            12,
            (
                "weight.shape == bias.shape == x.shape[-1:]",
                "tuple(weight.shape) == tuple(bias.shape) == (x.shape[-1],)",
            ),
        ),
        ANSWERS.edited("other examples", 12, ("((4, 8), (4, 8), (8,), (8,))", "((5, 3), (5, 3), (3,), (3,))")),
        ANSWERS.edited("another number for eps", 12, ("0.1234", "0.777")),
        ANSWERS.edited(
            "ignores alpha", 7.2, ("if any(('alpha' in node.kwargs for node in match.nodes)):", "if False:")
        ),
        ANSWERS.edited("no check at all", 7, (", extra_check=suits", "")),
        ANSWERS.edited(
            "eps of the default in the call",
            7.2,
            ("residual_layer_norm(x, residual, weight, bias, eps)", "residual_layer_norm(x, residual, weight, bias)"),
        ),
        ANSWERS.edited(
            "one tensor for two arguments",
            0,
            (
                "[torch.empty(shape) for shape in ((4, 8), (4, 8), (8,), (8,))]",
                "[torch.empty(4, 8)] * 2 + [torch.empty(8)] * 2",
            ),
        ),
        ANSWERS.edited(
            "weight and bias swapped",
            0,
            (
                "residual_layer_norm(x, residual, weight, bias, eps)",
                "residual_layer_norm(x, residual, bias, weight, eps)",
            ),
        ),
        ANSWERS.edited(
            "ignores the shapes",
            9,
            (
                "return same_dtype and x.shape == residual.shape and (weight.shape == bias.shape == x.shape[-1:])",
                "return same_dtype",
            ),
        ),
        ANSWERS.edited("ignores the dtypes", 10, ("return same_dtype and ", "return ")),
        ANSWERS.edited(
            "ignores the residual's shape", 9, ("same_dtype and x.shape == residual.shape and", "same_dtype and")
        ),
        ANSWERS.edited("ignores the weight's shape", 10, (" and (weight.shape == bias.shape == x.shape[-1:])", "")),
        ANSWERS.edited(
            "numbers for nodes", 10, ("if not all((isinstance(node, fx.Node) for node in nodes)):", "if False:")
        ),
        ANSWERS.edited("matrices only", 11.4, ("return same_dtype and ", "return x.ndim == 2 and same_dtype and ")),
        ANSWERS.edited("the width of the example", 10.5, ("x + residual, weight.shape,", "x + residual, (8,),")),
        ANSWERS.edited("no fake values", 12, ("with_fake_values(graph_module)", "graph_module")),
        ANSWERS.edited("the eps of the example", 12, ("{'eps': 0.1234}", "{'eps': 1e-05}")),
        Control("nothing", "def fuse_block_ends(graph_module):\n    return graph_module\n", 0),
    ),
    right_here={"swapped operands": "a sum has two orders, and the operator adds its first two arguments"},
    equivalent={**CODE_NOT_SEEN, "return False: return False -> return None": "None refuses, too"},
)
