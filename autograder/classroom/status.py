"""Define the exit statuses of the commands, and the errors that end a command with a message.

An error that is shown to the user has its exit status in `exit_code`, as in click. Only `run_command` prints errors.
"""

import io
import os
import sys
from collections.abc import Callable

DONE, DIFFERENT, WRONG_USAGE, REFUSED, OUR_FAILURE = 0, 1, 2, 3, 4


class CommandError(Exception):
    """End a command; the message is a sentence that says why and what to do."""

    exit_code = OUR_FAILURE


class UsageError(CommandError):
    """The arguments name something that does not exist, or contradict each other."""

    exit_code = WRONG_USAGE


def print_anything() -> None:
    """Let this process print any text: a character that the terminal's encoding lacks becomes a question mark."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")


def use_utf8() -> None:
    """Run this process again in Python's UTF-8 mode, if the locale gives names of files another encoding.

    Otherwise the folder of a student with an accent in the name is taken for something else. The terminal keeps the
    encoding of its locale.
    """
    if sys.getfilesystemencoding() != "utf-8":
        os.environ["PYTHONUTF8"] = "1"  # for the commands that this one starts
        os.environ.setdefault("PYTHONIOENCODING", f"{sys.stdout.encoding}:replace")
        os.execv(sys.executable, [sys.executable, "-X", "utf8", *sys.orig_argv[1:]])


def run_command(name: str, command: Callable[[], int]) -> int:
    """Run `command` and return its exit status; print an error for the user as `name: sentence`.

    Errors without `exit_code` are bugs of the program and are raised, except errors of the operating system.
    """
    try:
        return command()
    except BrokenPipeError:
        return OUR_FAILURE
    except MemoryError:
        print(f"{name}: memory ran out; free some and run the same command again.", file=sys.stderr)
        return OUR_FAILURE
    except Exception as error:
        status = getattr(error, "exit_code", OUR_FAILURE if isinstance(error, OSError) else None)
        if status is None:
            raise
        print(f"{name}: {error}", file=sys.stderr)
        return int(status)
