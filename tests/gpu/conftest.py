"""Everything in this folder needs a GPU, unless GPU_CHECK_DEVICE says that it is to be tried out on the CPU."""

import os
from pathlib import Path

import pytest
import torch

from tests import skips

HERE = Path(__file__).parent
# Backward kernels, whose programs take several tiles each.
LOOPS_OVER_TILES = (
    "test_gradients_agree_with_double_precision_on_the_cpu",
    "test_values_and_gradients_agree_with_double_precision_on_the_cpu",
    "test_dropout_has_the_mask_of_the_cpu_for_the_same_seed_forward_and_backward",
)


def pytest_collection_modifyitems(items):
    obstacle = os.environ.get("GPU_CHECK_NO_LOOPS", "")  # why Triton's interpreter runs none, from the GPU check
    missing = os.environ.get("GPU_CHECK_DEVICE") != "cpu" and not torch.cuda.is_available()
    for item in items:
        if item.path.is_relative_to(HERE):
            item.add_marker(pytest.mark.gpu)
            if missing:
                item.add_marker(pytest.mark.skip(reason=f"{skips.GPU}: torch finds no CUDA device here"))
            elif obstacle and item.originalname in LOOPS_OVER_TILES:
                item.add_marker(pytest.mark.skip(reason=obstacle))
