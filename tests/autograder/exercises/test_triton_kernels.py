"""What is likely wrong in a kernel is named: the load line, the missing argument, the formula."""

import pytest

from tests.autograder.exercises.judged import judged, messages, reference

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
    assert told.endswith("give `other=`.")


def test_a_wrong_kernel_whose_loads_without_other_change_nothing_is_told_of_its_formula():
    answer = reference("12_masked_blend", ("at, x + t * (y - x)", "at, x + t * y"))
    told = messages(judged("12_masked_blend", answer, hidden=False))
    assert "x + t * y; the blend adds" in told["the values of whole blocks"]
    assert not any("other=" in message for message in told.values())
