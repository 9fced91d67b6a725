"""The Triton kernels without a GPU: their numbers in Triton's interpreter, and that they compile for GPUs."""

import importlib.util
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent
ROOT = HERE.parents[2]
pytestmark = pytest.mark.skipif(
    importlib.util.find_spec("triton") is None, reason="Triton is not installed; `pip install triton==3.7.1` for these"
)


def test_the_kernels_are_right_in_the_interpreter() -> None:
    # In a process of its own, since Triton decides when it is imported whether it interprets.
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:xdist", str(HERE / "interpreted_kernels.py")]
    answer = subprocess.run(
        command,
        cwd=ROOT,
        env=os.environ | {"TRITON_INTERPRET": "1", "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert answer.returncode == 0, answer.stdout[-5000:] + answer.stderr[-2000:]


@pytest.mark.slow
@pytest.mark.parametrize(("capability", "dtype"), [("75", "float16"), ("90", "bfloat16")])
def test_the_kernels_compile_for_gpus_that_are_not_here(capability: str, dtype: str, tmp_path: Path) -> None:
    environment = {name: value for name, value in os.environ.items() if name != "TRITON_INTERPRET"}
    answer = subprocess.run(
        [sys.executable, str(HERE / "compiled_kernels.py"), capability, dtype],
        env=environment | {"TRITON_CACHE_DIR": str(tmp_path), "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert answer.returncode == 0, answer.stderr[-5000:]
    kernels = answer.stdout.splitlines()
    assert len(kernels) == 6 + 12 + 8 + 1
    # Half-precision numbers that lie side by side are read eight or sixteen bytes at a time.
    assert all(re.search(r"ld\.global\.v[24]\.b32", line) for line in kernels[:18])
