"""The protocol loads in an interpreter that has nothing installed."""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[3]


def test_the_protocol_needs_nothing_but_the_standard_library():
    code = (
        f"import sys; sys.path = [p for p in sys.path if 'site-packages' not in p] + [{str(ROOT)!r}]\n"
        "import autograder.protocol\n"
        "extra = {m.split('.')[0] for m in sys.modules} - set(sys.stdlib_module_names) - {'autograder', '__main__'}\n"
        "extra = {m for m in extra if not m.startswith('_')}\n"
        "assert not extra, extra\n"
    )
    done = subprocess.run([sys.executable, "-S", "-E", "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
