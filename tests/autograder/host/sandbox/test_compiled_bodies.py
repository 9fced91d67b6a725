"""Workers find the fused operators' compiled bodies, which they cannot change."""

import pytest

from autograder.host.sandbox import Limits
from tests.autograder.host.sandbox.conftest import OWN_TIERS, Run, by_name
from tests.drawn import some

PROGRAM = """
import sys, warnings
warnings.simplefilter("error")  # the eager body would warn
import torch
from course_lib.kernels import bias_silu
from course_lib.kernels.cpu import library
torch.set_num_threads(1)
x, bias = torch.randn(3, 40), torch.randn(40)
torch.testing.assert_close(bias_silu(x, bias), torch.nn.functional.silu(x + bias))
found = library.library_path(library.instruction_sets()[0])
for place in (found, library.FOLDER / "another.so"):
    try:
        place.open("r+b" if place == found else "wb")
    except OSError:
        continue
    sys.exit(f"{place} can be written")
print(library.loaded() is not None)
"""


@pytest.mark.parametrize(
    "name", some([tier for tier in OWN_TIERS if "forked" not in tier], 1, name="tiers with bodies")
)
def test_a_worker_runs_the_compiled_bodies_and_cannot_change_them(name: str, run: Run) -> None:
    ending = run(by_name(name), PROGRAM, limits=Limits(wall_s=60.0))

    assert (ending.exit_code, ending.output) == (0, "True\n")
