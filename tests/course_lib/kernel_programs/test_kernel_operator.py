"""Operators made of Triton kernels: their own tests run where Triton interprets, in a fork."""

import os
import re
from pathlib import Path

from tests.autograder.host.forked_command import fork_command

HERE = Path(__file__).parent
FRESH = HERE.parent / "kernels" / "fresh_triton.py"
MADE = HERE / "operators_of_kernels.py"


def test_operators_hold_in_the_interpreter() -> None:
    environment = {**os.environ, "TRITON_INTERPRET": "1", "OMP_NUM_THREADS": "1"}
    status, printed = fork_command([str(FRESH), str(MADE)], HERE.parents[2], environment).finish()
    assert status == 0, printed[-3000:]
    assert int(re.findall(r"(\d+) passed", printed)[-1]) == 12
