"""A BatchNorm that evaluates goes into the linear layer before or after it; look-alikes stay."""

import pytest
from torch import nn

from tests.course_lib.fusion.passes.batch_norm_programs import ROWS, Before, Between, Row, Tensor, folds
from tests.course_lib.fusion.passes.rewrites import left_alone, normal

FOLDS = {
    "after a linear layer": (Row, ROWS),
    "before a linear layer": (Before, (normal(33, 4),)),
    "between two": (Between, ROWS),
}


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("case", FOLDS)
def test_a_batch_norm_is_folded_and_checkpoints_load_and_all_gradients_flow(case: str, bias: bool) -> None:
    build, inputs = FOLDS[case]
    folds(build(bias), inputs, "linear_batch_norm")


def test_folding_that_moves_more_than_it_saves_is_refused() -> None:
    left_alone(Row(), (normal(2, 5),), "linear_batch_norm", "each run")
    left_alone(Before(), (normal(2, 4),), "linear_batch_norm", "each run")


def test_channels_last_of_a_linear_layer_are_not_its_second_dimension() -> None:
    class Cubes(Row):
        def __init__(self) -> None:
            super().__init__()
            self.linear_norm = nn.BatchNorm1d(4)
            self.eval()

    left_alone(Cubes(), (normal(9, 4, 5),), "linear_batch_norm", "shape")


class NormUsedTwice(Before):
    def forward(self, x: Tensor) -> object:
        normed = self.linear_norm(x)
        return self.next(normed) + normed[:, :3]


def test_a_batch_norm_whose_result_somebody_else_reads_stays() -> None:
    left_alone(NormUsedTwice(), (normal(33, 4),), "linear_batch_norm", "other users")
