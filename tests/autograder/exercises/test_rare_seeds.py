"""Answers get their marks with the seeds with which they once got others: sums that cancel, ties, and happy draws.

A run tries half of them, others each time; with WHOLE=1 all.
"""

import pytest

from autograder.exercises.quality.controls import controls
from tests.autograder.exercises.judged import judged, reference
from tests.drawn import some

LOST = [
    ("01_scaled_dot_product", "odd sizes and strides, an empty batch, and calls in a row", 230),
    ("08_backward_by_hand", "nothing dropped, nearly everything dropped", 5322649496432272415),
    ("10_fuse_where_it_pays", "the value that leaves its register", 3006142324128547907),
    ("10_fuse_where_it_pays", "the time of many kernels", 111),
    ("10_fuse_where_it_pays", "the value that leaves its register", 674),
    ("11_replace_block_end", "other ranks, sizes and dtypes", 379),
    ("12_layer_norm", "forward: a large mean", 73),
    ("12_masked_blend", "lengths around a block", 752),
    ("13_tiled_attention", "causal output", 18),
    ("13_tiled_attention", "the gradients", 307),
    ("13_tiled_attention", "lengths that are no multiple of a tile", 520),
    ("13_tiled_attention", "keys in two parts", 531),
    ("13_tiled_attention", "memory does not grow with the keys", 900),
    ("13_tiled_attention", "the gradients", 983),
]


@pytest.mark.parametrize(("exercise_id", "check", "seed"), some(LOST, 7, name="lost checks"))
def test_a_reference_keeps_a_check_that_it_lost_once(exercise_id: str, check: str, seed: int) -> None:
    record = judged(exercise_id, reference(exercise_id), seed=seed, only=[check])
    assert [(each.name, each.message) for each in record.checks if each.status != "passed"] == []
    assert record.points == record.max_points


MARKED_OTHERWISE = [  # exercise, control, seed
    ("01_scaled_dot_product", "an inverted mask", 5),
    ("09_read_generated_code", "one block", 1),
    ("09_read_generated_code", "one block", 77),
    ("10_find_the_bad_passes", "one by one", 2928179657763913845),
    ("10_find_the_bad_passes", "halves of the whole only", 6910710683387155260),
    ("10_lower_regions", "first the steps, then the registers", 2588104131559082073),
    ("10_minimal_backend", "a module", 7933052381857810818),
    ("11_pass_identity", "an equal copy", 1),
    ("15_replay_by_shape", "names bound to the inputs", 5102969386853286745),
    ("16_counter_callback", "before the step", 4),
]


@pytest.mark.parametrize(("exercise_id", "name", "seed"), some(MARKED_OTHERWISE, 5, name="other marks"))
def test_a_control_gets_the_marks_that_it_missed_once(exercise_id: str, name: str, seed: int) -> None:
    (control,) = (each for each in controls(exercise_id) if each.name == name)
    record = judged(exercise_id, control.answer, seed=seed)
    assert control.passes(record.points), [(each.name, each.points, each.message) for each in record.checks]
