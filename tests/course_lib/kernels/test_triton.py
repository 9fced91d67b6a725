"""The Triton kernels without a GPU: their numbers in Triton's interpreter, and that they compile for GPUs."""

import os
import re
from pathlib import Path

import pytest

from tests.autograder.host.forked_command import fork_command
from tests.drawn import some

HERE = Path(__file__).parent
ROOT = HERE.parents[2]

# An architecture, a dtype, whether all variants of each kernel; how many kernels, and how many of them the first ones,
# whose half-precision numbers lie side by side and are read eight or sixteen bytes at a time.
GPUS = [
    pytest.param(("75", "float16"), 6 + 4 + 2, 12, id="oldest"),
    pytest.param(("90", "bfloat16", "all"), 6 + 10 + 8 + 1, 20, id="newest"),
]


def run_with_triton(*command: str, **environment: str) -> tuple[int, str]:
    """Run a script of this folder in a fork, where Triton reads this environment; return its status and output."""
    import torch._dynamo  # noqa: F401  # once for all forks; so does the first call of an operator

    inherited = {name: value for name, value in os.environ.items() if name != "TRITON_INTERPRET"}
    script, *arguments = command
    words = [str(HERE / "fresh_triton.py"), str(HERE / script), *arguments]
    return fork_command(words, ROOT, inherited | {"OMP_NUM_THREADS": "1"} | environment).finish()


@pytest.mark.slow
def test_the_kernels_are_right_in_the_interpreter() -> None:
    status, printed = run_with_triton("interpreted_kernels.py", TRITON_INTERPRET="1")
    assert status == 0, printed[-5000:]
    assert int(re.findall(r"(\d+) passed", printed)[-1]) > 100


@pytest.mark.slow
@pytest.mark.parametrize(("arguments", "count", "vectorised"), some(GPUS, 1, name="GPUs"))
def test_the_kernels_compile_for_gpus_that_are_not_here(
    arguments: tuple[str, ...], count: int, vectorised: int, tmp_path: Path
) -> None:
    status, printed = run_with_triton("compiled_kernels.py", *arguments, TRITON_CACHE_DIR=str(tmp_path))
    assert status == 0, printed[-5000:]
    kernels = printed.splitlines()
    assert len(kernels) == count
    assert all(re.search(r"ld\.global\.v[24]\.b32", line) for line in kernels[:vectorised])
    found = re.findall(r"programs (\d+) of (\d+) spilled (\d+) loop (\d+) barriers (\d+)", printed)
    backward = [tuple(map(int, each)) for each in found]
    assert len(backward) == ("all" in arguments) * 12
    assert all(allowed >= assumed for allowed, assumed, *_ in backward), backward
    assert all(spilled == 0 for _, _, spilled, *_ in backward), backward
    if backward:
        assert_rows_take_little(backward)


def assert_rows_take_little(backward: list[tuple[int, ...]]) -> None:
    """Check a turn of the loops that a row of 768 in bfloat16 takes: see the order in `compiled_kernels.py`."""
    activations, vectors, plain = backward[:3], backward[3:8], backward[9]
    # A program is a warp with a row, so its instructions are a row's; an activation's row takes three turns.
    assert all(3 * turn <= 900 and barriers == 0 for *_, turn, barriers in activations), activations
    assert all(turn <= 1150 and barriers == 0 for *_, turn, barriers in vectors), vectors
    assert plain[3] <= 700, plain
    assert plain[4] == 0, plain
