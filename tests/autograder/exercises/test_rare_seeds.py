"""Reference solutions keep each check with the seeds with which they once lost one: sums that cancel, and ties."""

import pytest

from tests.autograder.exercises.judged import judged, reference

LOST = [
    ("01_scaled_dot_product", "odd sizes and strides, an empty batch, and calls in a row", 230),
    ("08_backward_by_hand", "nothing dropped, nearly everything dropped", 5322649496432272415),
    ("10_fuse_where_it_pays", "the value that leaves its register", 3006142324128547907),
    ("12_layer_norm", "forward: a large mean", 73),
]


@pytest.mark.parametrize(("exercise_id", "check", "seed"), LOST, ids=[exercise for exercise, *_ in LOST])
def test_a_reference_keeps_a_check_that_it_lost_once(exercise_id: str, check: str, seed: int) -> None:
    record = judged(exercise_id, reference(exercise_id), seed=seed, only=[check])
    assert [(each.name, each.message) for each in record.checks if each.status != "passed"] == []
    assert record.points == record.max_points
