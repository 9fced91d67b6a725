"""Kernels on bfloat16: their own tests run where Triton interprets, in a fork."""

import os
import re
from pathlib import Path

from tests.autograder.host.forked_command import fork_command

HERE = Path(__file__).parent
FRESH = HERE.parent / "kernels" / "fresh_triton.py"


def test_bfloat16_is_converted_right_or_refused_in_the_interpreter() -> None:
    words = [str(FRESH), str(HERE / "bfloat16_programs.py")]
    environment = {**os.environ, "TRITON_INTERPRET": "1", "OMP_NUM_THREADS": "1"}
    status, printed = fork_command(words, HERE.parents[2], environment).finish()
    assert status == 0, printed[-3000:]
    assert int(re.findall(r"(\d+) passed", printed)[-1]) == 8
