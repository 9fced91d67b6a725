"""Run one section, in a process that it may crash: python -m benchmarks.gpu.child SECTION DEVICE BUDGET_S NOTES."""

import sys
import time
from pathlib import Path

from benchmarks.gpu.section import Run, section


def main() -> int:
    """Run the section named on the command line; whatever it raises ends this process with a traceback."""
    name, device, budget_s, notes = sys.argv[1:]
    section(name).run(Run(device, Path(notes), time.monotonic() + float(budget_s)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
