"""Print the requirements in pyproject.toml, one per line: list_requirements.py [EXTRA ...].

Without an extra: the package's own dependencies. With extras: those of the package and of each extra named.
Standard library only, because it runs before anything is installed.
"""

import sys
import tomllib
from pathlib import Path


def requirements(pyproject: str, extras: list[str]) -> list[str]:
    """Return the requirements of the package and of `extras`; raises ValueError for an unknown extra."""
    project = tomllib.loads(pyproject)["project"]
    known = project["optional-dependencies"]
    unknown = sorted(set(extras) - set(known))
    if unknown:
        raise ValueError(f"pyproject.toml has no extra {', '.join(unknown)}; it has {', '.join(sorted(known))}.")
    return [*project["dependencies"], *(line for extra in extras for line in known[extra])]


if __name__ == "__main__":
    print(*requirements(Path("pyproject.toml").read_text(encoding="utf-8"), sys.argv[1:]), sep="\n")
