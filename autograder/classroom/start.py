"""Start a command. One that grades one answer begins with the process that workers are forked from; a class is watched.

That process imports torch while this one does: on two cores both take the time of one. So this module imports nothing
that needs torch.
"""

import argparse
import contextlib
import sys
import threading
from collections.abc import Sequence

from autograder.classroom.sandbox_options import add_sandbox, open_chosen
from autograder.classroom.status import print_anything, use_utf8
from autograder.classroom.supervisor import supervised
from autograder.course_settings import SettingsError
from autograder.host.sandbox import SandboxError
from autograder.host.sandbox.process import StartError

GRADE_ONE = ("check", "grade")
GRADE_CLASS = ("batch", "close")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command of the command line and return its exit status."""
    if arguments is None:
        use_utf8()
    print_anything()
    given = sys.argv[1:] if arguments is None else list(arguments)
    if arguments is None and given[:1] and given[0] in GRADE_CLASS:
        return supervised("autograder", lambda: _run(given))
    return _run(given)


def _run(given: list[str]) -> int:
    warming = threading.Thread(target=_warm, args=(given,)) if given[:1] and given[0] in GRADE_ONE else None
    if warming:
        warming.start()
    from autograder.classroom import cli  # imports torch

    if warming:
        warming.join()
    return cli.main(given)


def _warm(arguments: Sequence[str]) -> None:
    """Open the chosen sandbox and start its zygote; whatever is wrong here is said by the command itself."""
    options = argparse.ArgumentParser(add_help=False, exit_on_error=False)
    add_sandbox(options)
    with contextlib.suppress(argparse.ArgumentError, SandboxError, SettingsError, StartError, OSError):
        sandbox = open_chosen(options.parse_known_args(arguments)[0])
        if sandbox.zygotes is not None:
            sandbox.expect("graphs")
            sandbox.zygotes.warm()
