"""Operators of checked texts: their own tests run in a fork, where Triton interprets."""

import os
import re
from pathlib import Path

from tests.autograder.host.forked_command import fork_command

HERE = Path(__file__).parent


def test_operators_of_texts_hold_in_the_clean_worker() -> None:
    words = [str(HERE / "operators_of_texts.py")]
    status, printed = fork_command(words, HERE.parents[2], {**os.environ, "OMP_NUM_THREADS": "1"}).finish()
    assert status == 0, printed[-3000:]
    assert int(re.findall(r"(\d+) passed", printed)[-1]) == 6
