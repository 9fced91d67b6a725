"""First code in the sandbox: it takes the channel, limits itself for good, and runs the worker.

Started as `python -I -B -c TEXT OPTIONS PROGRAM`. OPTIONS is a JSON object: `channel` is an inherited descriptor,
`rlimits` maps names to values for soft and hard limits, and `path` is put first on `sys.path`.
"""

import json
import os
import resource
import sys

CHANNEL = 3


def take_channel(inherited: int) -> None:
    """Make the channel descriptor 3 and close all descriptors above it."""
    if inherited != CHANNEL:
        os.dup2(inherited, CHANNEL)
    os.closerange(CHANNEL + 1, 1 << 20)


# The worker's `self_confinement` has this function too. It cannot be shared: limits hold before anything is imported
# from `path`, and the worker has no module of the host.
def lower_limits(rlimits: dict[str, int]) -> None:
    """Set soft and hard limits; a limit that is already lower stays."""
    for name, value in rlimits.items():
        which = getattr(resource, name)
        hard = resource.getrlimit(which)[1]
        lowest = value if hard == resource.RLIM_INFINITY else min(value, hard)
        resource.setrlimit(which, (lowest, lowest))


def import_from(path: str) -> None:
    """Put `path` first, and remove the finders of editable installs, which would find masked modules elsewhere."""
    sys.path.insert(0, path)
    sys.meta_path[:] = [finder for finder in sys.meta_path if not _is_editable(finder)]


def _is_editable(finder: object) -> bool:
    return str(getattr(finder, "__module__", "")).startswith("__editable__")


def run() -> None:
    """Prepare this process as its command line says, then run the program given there."""
    options, program = json.loads(sys.argv[1]), sys.argv[2]
    take_channel(options["channel"])
    lower_limits(options["rlimits"])
    import_from(options["path"])
    sys.argv[:] = ["worker"]
    exec(compile(program, "<worker>", "exec"), {"__name__": "__main__"})


if __name__ == "__main__":
    run()
