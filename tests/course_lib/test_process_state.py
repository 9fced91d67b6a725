"""No function of the library changes torch or the process: its tests run in a process of their own.

Some of their programs leave PyTorch with memory that it uses again later, so that tests after them could fail.
"""

import os
import re
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent


def test_torch_and_the_process_stay_as_they_were() -> None:
    command = [sys.executable, "-m", "pytest", "-p", "no:xdist", "-p", "no:cacheprovider"]
    done = subprocess.run(
        [*command, str(HERE / "process_states.py")],
        cwd=HERE.parents[1],
        env=os.environ | {"OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-5000:]
    assert int(re.findall(r"(\d+) passed", done.stdout)[-1]) > 100
