"""Run the attacks at levels 3 and 4, on a machine whose interpreter other users cannot read.

    python -m tests.autograder.host.hostile.readable [--folder FOLDER] [ARGUMENT OF PYTEST ...]

These levels mount nothing, so a worker's user has to reach interpreter and packages where they lie. In FOLDER this
makes an environment around an interpreter of the system, with the packages of this one as hard links, and runs the
attacks in it: at level 3 as root, at level 4 as nobody. A line for each level says how it went.
"""

import argparse
import os
import subprocess
import sys
import sysconfig
from collections.abc import Sequence
from pathlib import Path

from tests.autograder.host.hostile.catalogue import ROOT
from tests.autograder.host.hostile.levels import AT_LEVEL

FOLDER = Path("/opt/autograder-readable")
NOBODY = 65_534
# What succeeds unprotected is proven where everything is run; here it is asked what these levels hold.
TESTS = (
    *(f"tests/autograder/host/hostile/test_{name}.py" for name in ("answers", "machine")),
    *("-k", "not naive and not unprotected"),
)
PLACES = ("/usr/bin", "/usr/local/bin", "/bin")


class NoInterpreterError(Exception):
    """No interpreter of this version lies where every user may read it."""


def make(folder: Path) -> Path:
    """Make the environment, or bring it up to date, and return its interpreter."""
    version = f"{sys.version_info.major}.{sys.version_info.minor}"
    base = next((Path(place, f"python{version}") for place in PLACES if Path(place, f"python{version}").exists()), None)
    if base is None or not is_readable(base.resolve()):
        raise NoInterpreterError(
            f"There is no python{version} that every user may read; install it, e.g. with "
            f"`apt-get install python{version}`."
        )
    packages = folder / "lib" / f"python{version}"
    packages.mkdir(parents=True, exist_ok=True)
    (folder / "bin").mkdir(exist_ok=True)
    subprocess.run(["rm", "-rf", str(packages / "site-packages")], check=True)
    source = sysconfig.get_path("purelib")
    if subprocess.run(["cp", "-al", source, str(packages)], capture_output=True, check=False).returncode:
        subprocess.run(["cp", "-a", source, str(packages)], check=True)  # another file system
    (folder / "pyvenv.cfg").write_text(f"home = {base.parent}\ninclude-system-site-packages = false\n")
    python = folder / "bin" / "python"
    python.unlink(missing_ok=True)
    python.symlink_to(base)
    subprocess.run(["chmod", "-R", "go+rX", str(folder)], check=True)
    return python


def is_readable(place: Path) -> bool:
    """Whether every user may read a file and enter all folders on the way to it."""
    return bool(place.stat().st_mode & 0o004) and all(parent.stat().st_mode & 0o001 for parent in place.parents)


def run(python: Path, level: int, arguments: Sequence[str]) -> int:
    """Run the tests with this level as the one to hold, as root or as nobody; return pytest's status."""
    become = ["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups"] if level == 4 else []
    variables = {
        "PATH": f"{python.parent}:{os.defpath}",
        "HOME": "/tmp",
        "OMP_NUM_THREADS": "1",
        "PYTHONDONTWRITEBYTECODE": "1",
        "WHOLE": "1",
        AT_LEVEL: str(level),
    }
    # the default folder of pytest belongs to whoever came first
    own = f"--basetemp=/tmp/attacks-at-level-{level}"
    command = [*become, str(python), "-m", "pytest", own, *(arguments or TESTS)]
    return subprocess.run(command, cwd=ROOT, env=variables, check=False).returncode


def main() -> int:
    """Make the environment, run both levels, and return 0 if both held."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--folder", type=Path, default=FOLDER)
    parser.add_argument("--level", type=int, choices=(3, 4), action="append", default=[])
    options, arguments = parser.parse_known_args()
    if os.geteuid() != 0:
        parser.error("levels 3 and 4 are tried as root and as nobody; run this as root.")
    try:
        python = make(options.folder)
    except NoInterpreterError as error:
        parser.error(str(error))
    status = {level: run(python, level, arguments) for level in options.level or (3, 4)}
    for level, code in status.items():
        print(f"level {level}: {'holds' if code == 0 else f'pytest ended with {code}'}")
    return max(status.values())


if __name__ == "__main__":
    sys.exit(main())
