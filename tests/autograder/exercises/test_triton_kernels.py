"""What is likely wrong in a kernel is named: the load line, the missing argument, the formula."""

from dataclasses import replace

import pytest

from autograder.exercises import find
from autograder.exercises.triton_kernels.layer_norm import FORWARD, FORWARD_RIGHT, half, normed
from autograder.host.checks.kernel_checks import holds
from autograder.host.exercise import Check
from autograder.host.grading import graded_parts
from autograder.host.judge import judge
from autograder.host.sandbox import open_sandbox
from tests.autograder.exercises.judged import judged, known_answer, messages, reference
from tests.drawn import third

GIVE = "`tl.load` with a mask and without `other=`: the lanes outside of the mask hold no defined value on a GPU"
# exercise, check, the start of the line, what is left out of it
UNFILLED = [
    ("12_layer_norm", "forward: the values", "    x = tl.load(", ", other=0.0"),
    ("12_layer_norm", "backward: the gradient of x", "        x = tl.load(", ", other=0.0"),
    ("12_long_softmax", "rows wider than the block", "        x = tl.load(", ', other=-float("inf")'),
    ("12_block_end_forward", "no access outside of the tensors", "    x = tl.load(", ", other=0.0"),
]


@pytest.mark.parametrize(("exercise_id", "check", "start", "other"), UNFILLED, ids=[u[1] for u in UNFILLED])
def test_a_masked_load_without_other_is_named_by_its_line_where_the_result_depends_on_it(
    exercise_id, check, start, other
):
    lines = reference(exercise_id).split("\n")
    number = next(i for i, line in enumerate(lines) if line.startswith(start))
    assert other in lines[number]
    lines[number] = lines[number].replace(other, "")
    told = messages(judged(exercise_id, "\n".join(lines), only=[check]))[check]
    assert told.startswith(f"Line {number + 1} of the answer: {GIVE}")
    assert "; give `other=`." in told


def test_a_wrong_kernel_whose_loads_without_other_change_nothing_is_told_of_its_formula():
    answer = reference("12_masked_blend", ("at, x + t * (y - x)", "at, x + t * y"))
    told = messages(judged("12_masked_blend", answer, hidden=False))
    assert "x + t * y; the blend adds" in told["the values of whole blocks"]
    assert not any("other=" in message for message in told.values())


# exercise, control, check, words of its message
NORM, SOFTMAX = "12_layer_norm", "12_long_softmax"
NAMED = [
    (NORM, "atomic sums", "backward: sums in a fixed order", "`tl.atomic_add` or another atomic operation"),
    (NORM, "differences outside of the row", "forward: the values", "Lanes outside of the row count in the variance"),
    (NORM, "variance in one pass", "forward: a large mean", "subtract the mean from the row first"),
    (NORM, "divided by n - 1", "forward: a large mean", "divided by n - 1; LayerNorm divides by n"),
    (NORM, "vectors swapped", "backward: the gradients of weight and bias", "weight and bias changed places"),
    (NORM, "sums with weight", "backward: the gradients of weight and bias", "it was multiplied by the weight"),
    (
        NORM,
        "no strides of grad",
        "backward: views with strides",
        "grad was read as if its rows lay one after the other",
    ),
    (NORM, "statistics in half precision", "forward: float16 in, float32 inside", "in float32, rounded once"),
    (SOFTMAX, "a loop that breaks", "rows that fit into a block", "a loop of a kernel has neither `break` nor"),
    (SOFTMAX, "zero in masked lanes", "rows that fit into a block", "count in the sum, as numbers 0"),
    (SOFTMAX, "no largest number", "large numbers", "exp of a large number overflows"),
    (SOFTMAX, "the first block only", "rows wider than the block", "divided by the sum of the first block"),
    (
        "12_block_end_backward",
        "padding in the variance",
        "the gradient by residual for rows that fill no block",
        "Lanes beyond the row count in the variance",
    ),
    ("12_masked_blend", "a mask by addresses", "views with strides", "the mask is too narrow"),
]
TRIED = third(NAMED, name="mistakes in triton_kernels")  # the others in other runs


@pytest.mark.parametrize(("exercise_id", "control", "check", "words"), TRIED, ids=[n[1] for n in TRIED])
def test_a_likely_mistake_in_a_kernel_is_named(exercise_id, control, check, words):
    told = messages(judged(exercise_id, known_answer(exercise_id, control), only=[check]))
    assert words in told[check]


def test_a_misconception_is_not_blamed_for_what_lies_as_near_to_the_right_values():
    check = Check("half", "half precision", 1, holds(half, normed, FORWARD, FORWARD_RIGHT))
    exercise = replace(find(NORM), checks=(check,))
    answer = graded_parts(exercise, {NORM: known_answer(NORM, "statistics in half precision")})
    (told,) = messages(judge(exercise, answer, sandbox=open_sandbox(), seed=11)).values()
    assert "eps" not in told
    assert "rounding makes at most" in told


OF_OPERATOR = [
    ("no mask in backward", "Backward drops nothing"),
    ("gradient of the sum forgotten", "The gradient of the sum itself is missing"),
    ("weight and shift swapped", "weight and shift changed places"),
]


@pytest.mark.parametrize(
    ("control", "check", "words"),
    [
        ("saves x", "what backward keeps", "Backward keeps x alive"),
        ("residual in the context", "what backward keeps", "Backward keeps residual alive"),
        ("saves the mask", "what backward keeps", "no argument and no output, such as a mask, alive"),
        ("three arguments for the kernel", "launches where Triton runs", "missing 5 required positional arguments"),
        ("no launch in backward", "launches where Triton runs", "the gradient by x is off"),
    ],
)
def test_what_backward_keeps_and_where_triton_runs_is_asked(control, check, words):
    told = messages(judged("12_block_end_operator", known_answer("12_block_end_operator", control), only=[check]))
    assert words in told[check]


@pytest.mark.parametrize(("control", "words"), OF_OPERATOR, ids=[o[0] for o in OF_OPERATOR])
def test_a_likely_mistake_in_the_derivative_of_an_operator_is_named(control, words):
    exercise = "12_block_end_operator"
    told = messages(judged(exercise, known_answer(exercise, control), only=["gradients through forward's mask"]))
    assert any(words in message for message in told.values())
