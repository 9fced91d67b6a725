"""Everything in this folder needs a GPU, unless GPU_CHECK_DEVICE says that it is to be tried out on the CPU."""

import os
from pathlib import Path

import pytest
import torch

from tests import skips

HERE = Path(__file__).parent


def pytest_collection_modifyitems(items):
    missing = os.environ.get("GPU_CHECK_DEVICE") != "cpu" and not torch.cuda.is_available()
    for item in items:
        if item.path.is_relative_to(HERE):
            item.add_marker(pytest.mark.gpu)
            if missing:
                item.add_marker(pytest.mark.skip(reason=f"{skips.GPU}: torch finds no CUDA device here"))
