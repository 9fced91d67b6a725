"""Run the attack suite: measure its time, and check that every attack is stopped.

    python -m benchmarks.grading.attack_suite [--quick]

These are the tests that `autograder/README.md` describes: hostile answers, notebooks and programs, each first against
a naive grader or an unprotected process, then at the levels that promise to stop it. `make test` draws a part of them;
here all are run. Exit status: that of the tests.
"""

import argparse
import os
import re
import subprocess
import sys
import time
from pathlib import Path

from autograder.host.sandbox import open_sandbox

ROOT = Path(__file__).resolve().parents[2]
TESTS = ("hostile", "sandbox", "clock/test_clock_attacks.py")
TARGET_S = 360


def main() -> int:
    """Run the tests and print one line for each figure; see the module."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="the catalogue of attacks only")
    options = parser.parse_args()
    cores, load = len(os.sched_getaffinity(0)), os.getloadavg()[0]
    chosen = ("hostile/test_catalogue.py",) if options.quick else TESTS
    places = [str(ROOT / "tests" / "autograder" / "host" / name) for name in chosen]
    processes = 0 if options.quick else cores + 1
    command = [sys.executable, "-m", "pytest", "-n", str(processes), "--dist", "worksteal", *places]
    started = time.monotonic()
    environment = {**os.environ, "WHOLE": "1"}
    answer = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, text=True, check=False, env=environment)
    seconds = time.monotonic() - started
    said = answer.stdout.strip().splitlines()
    failures = "\n".join(line for line in said if line.startswith(("FAILED", "ERROR")))
    stopped = "no attack succeeded" if answer.returncode == 0 else f"the tests did not end: status {answer.returncode}"
    print(failures or stopped)
    counts = [line.strip("= ") for line in said if re.search(r"\d+ (passed|failed)", line)]
    print(counts[-1] if counts else "pytest printed no number of tests")
    print(f"cores, load before it began  {cores}, {load:.1f}")
    print(f"strongest level here         {open_sandbox().level}")
    print(f"seconds                      {seconds:.0f}, target {TARGET_S}")
    return answer.returncode


if __name__ == "__main__":
    sys.exit(main())
