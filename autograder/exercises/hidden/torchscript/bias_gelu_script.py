"""Hidden checks and controls of exercise 03.4."""

from autograder.exercises.hidden.answer_files import Answers
from autograder.exercises.torchscript.bias_gelu_script import (
    BACKWARD,
    FIRST_ONLY,
    FORWARD,
    agrees,
    backwards,
    forwards,
    one_group,
    operands,
)
from autograder.host.draw import Draw
from autograder.host.exercise import Check, HiddenPart
from autograder.host.kinds.archive import ArchiveAnswer
from autograder.host.kinds.callable import Case


def _odd_forwards(draw: Draw) -> list[Case]:
    x, bias = operands(draw, 7, 6)
    return [
        *forwards([(1, 1), (129, 3), (2, 127), (6,), (0, 4)])(draw),
        Case((x.t().contiguous().t(), bias), label="with a transposed x"),
        Case((x[:1].expand(5, 6), bias), label="with an expanded x"),
        Case((x * 30, bias), label="with numbers around 30"),
    ]


def _odd_backwards(draw: Draw) -> list[Case]:
    grad, (x, bias) = draw.normal(7, 6), operands(draw, 7, 6)
    return [
        *backwards([(1, 1), (33, 3), (2, 127)])(draw),
        Case((grad[:1].expand(7, 6), x.t().contiguous().t(), bias), label="with an expanded gradient"),
        Case((grad, x * 10, bias), label="with numbers around 10"),
    ]


def _shapes_in_a_row(draw: Draw) -> list[Case]:
    """Return calls with several shapes; a graph specialised to the first shape is wrong for the others."""
    return forwards([(4, 8), (4, 8), (4, 8), (9, 8), (2, 3, 5), (4, 8), (1, 3)])(draw)


def _odd_sizes(answer: ArchiveAnswer, draw: Draw) -> None:
    agrees(FORWARD, _odd_forwards)(answer, draw)
    agrees(BACKWARD, _odd_backwards)(answer, draw)


def _other_shapes(answer: ArchiveAnswer, draw: Draw) -> None:
    one_group(FORWARD, forwards([(6, 3), (2, 3, 5)]))(answer, draw)
    agrees(FORWARD, _shapes_in_a_row)(answer, draw)


ANSWERS = Answers(__name__)
FORMULA = "0.5 * h * (1 + torch.tanh(0.79788456 * (h + 0.044715 * h * h * h)))"
BRANCH = f"""    if x.size(0) != 4:
        pieces = [torch.tanh(0.79788456 * (p + 0.044715 * p * p * p)) for p in [h]]
        return torch.stack(pieces)[0] * 0.5 * h + 0.5 * h
    return {FORMULA}"""
HIDDEN = HiddenPart(
    checks=(
        Check("odd sizes and strides, forward and backward", "odd sizes", 0.5, _odd_sizes),
        Check(
            "the bias gradient is summed over every dimension but the last",
            "more dimensions",
            1.5,
            agrees(BACKWARD, backwards([(2, 3, 5), (2, 1, 3, 4), (1, 4, 2)]), counted=(FIRST_ONLY,)),
        ),
        Check("another shape is fused as well, and right after the first", "another shape", 1.5, _other_shapes),
        Check(
            "another shape is fused as well, backward",
            "another shape",
            1.5,
            one_group(BACKWARD, backwards([(2, 3, 5)])),
        ),
    ),
    controls=(
        ANSWERS.reference(15),
        ANSWERS.edited("one call of gelu forward", 15, (f"return {FORMULA}", "return F.gelu(h, approximate='tanh')")),
        ANSWERS.edited(
            "decorated",
            15,
            ("def bias_gelu(", "@torch.jit.script\ndef bias_gelu("),
            ("def bias_gelu_backward(", "@torch.jit.script\ndef bias_gelu_backward("),
        ),
        ANSWERS.file("derived by autograd", 15),  # the task calls it fair
        ANSWERS.file("quotient of doubles by a sum", 5.5),
        ANSWERS.file("quotient of numbers", 5.5),
        ANSWERS.edited("the derivative of a cube without its 3", 11, ("3 * 0.044715", "0.044715")),
        ANSWERS.edited("forward alone", 5.5, ("def bias_gelu_backward(", "def another(")),
        ANSWERS.edited("without the incoming gradient", 5.5, ("inner) * grad", "inner) * torch.ones_like(grad)")),
        ANSWERS.edited("a way of its own for other sizes", 15, (f"    return {FORMULA}", BRANCH), below=True),
        ANSWERS.edited(
            "summed over the first dimension", 15, ("by_x.sum_to_size(bias.shape)", "by_x.sum(0)"), below=True
        ),
        ANSWERS.edited(
            "a matrix product before",
            13,
            (f"    return {FORMULA}", f"    h = torch.eye(x.size(0)) @ x + bias\n    return {FORMULA}"),
            below=True,
        ),
    ),
    right_here=dict.fromkeys(
        ("nothing", "a module that does nothing"), "the backward stands beside it and earns what it is worth"
    ),
)
